//! Round trips, oracles and hostile bytes for the whole wire layer.

use crate::packet::{LinkType, Packet};
use crate::wire::build::SegmentBuilder;
use crate::wire::edit::bare_ack;
use crate::wire::flow::Endpoint;
use crate::wire::ip::Network;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Bypass, Flags, Options, Segment, Timestamps};
use crate::wire::{checksum, ip};
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::collection::vec as vec_of;
use proptest::option;
use proptest::prelude::*;
use smoltcp::wire::{IpAddress, TcpOption, TcpPacket};

const LINK_TYPES: [LinkType; 2] = [LinkType::Ethernet, LinkType::Ip];

/// Everything that a builder can be told.
#[derive(Clone, Debug)]
struct Plan {
    link_type: LinkType,
    vlan: Vec<u16>,
    source: Endpoint,
    destination: Endpoint,
    numbers: (u32, u32, u16),
    flags: u16,
    options: Options,
    payload: Vec<u8>,
    uncaptured: u32,
}

impl Plan {
    fn builder(&self) -> SegmentBuilder<'_> {
        let builder = SegmentBuilder::new(self.source, self.destination)
            .seq(SeqNumber(self.numbers.0))
            .ack(SeqNumber(self.numbers.1))
            .window(self.numbers.2)
            .flags(Flags(self.flags))
            .options(self.options)
            .payload(&self.payload)
            .payload_len(self.payload.len() as u32 + self.uncaptured);
        self.vlan.iter().fold(builder, |builder, id| builder.vlan(*id))
    }

    fn build(&self) -> Packet {
        self.builder().build(self.link_type)
    }
}

fn link_type() -> impl Strategy<Value = LinkType> {
    prop::sample::select(&LINK_TYPES[..])
}

fn endpoints() -> impl Strategy<Value = (Endpoint, Endpoint)> {
    let ports = (1..=u16::MAX, 1..=u16::MAX);
    prop_oneof![
        (any::<[[u8; 4]; 2]>(), ports.clone())
            .prop_map(|([a, b], (p, q))| (Endpoint::from((a, p)), Endpoint::from((b, q)))),
        (any::<[[u8; 16]; 2]>(), ports)
            .prop_map(|([a, b], (p, q))| (Endpoint::from((a, p)), Endpoint::from((b, q)))),
    ]
}

/// Options that all fit into a header, but for the last SACK blocks.
fn options() -> impl Strategy<Value = Options> {
    let timestamps = any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo });
    let block = any::<(u32, u32)>().prop_map(|(l, r)| (SeqNumber(l), SeqNumber(r)));
    (
        option::of(any::<u16>()),
        option::of(0_u8..=14),
        any::<(bool, bool)>(),
        option::of(timestamps),
        vec_of(block, 0..=4),
    )
        .prop_map(|(mss, window_scale, (sack_permitted, signed), timestamps, sack)| Options {
            mss,
            window_scale,
            sack_permitted: sack_permitted && !signed,
            timestamps,
            sack: sack.into_iter().collect(),
            signed,
            multipath: false,
        })
}

fn plan() -> impl Strategy<Value = Plan> {
    (
        (link_type(), vec_of(any::<u16>(), 0..=2), endpoints()),
        (any::<(u32, u32, u16)>(), 0_u16..0x200, options()),
        (vec_of(any::<u8>(), 0..64), prop_oneof![Just(0), 0..2000_u32, 65_000..70_000_u32]),
    )
        .prop_map(|((link_type, vlan, ends), (numbers, flags, options), payload)| Plan {
            link_type,
            vlan,
            source: ends.0,
            destination: ends.1,
            numbers,
            flags,
            options,
            payload: payload.0,
            uncaptured: payload.1,
        })
}

fn smoltcp_address(endpoint: Endpoint) -> IpAddress {
    match endpoint.ip() {
        IpAddr::V4(address) => IpAddress::Ipv4(address),
        IpAddr::V6(address) => IpAddress::Ipv6(address),
    }
}

/// What must hold of every packet, however hostile.
fn check_invariants(packet: &Packet) {
    let Ok(segment) = Segment::parse(packet) else { return };
    let captured = packet.bytes().len();
    assert!(segment.network_offset < segment.transport_offset);
    assert!(segment.transport_offset + 20 <= segment.payload_offset);
    assert!(usize::from(segment.payload_offset) <= captured);
    assert!(u32::from(segment.payload_offset) + segment.payload_len <= packet.wire_len());

    let bare = bare_ack(packet, &segment);
    let again = Segment::parse(&bare).expect("a bare ACK parses");
    assert_eq!(
        (again.source, again.destination, again.ack, again.window, again.options),
        (segment.source, segment.destination, segment.ack, segment.window, segment.options),
    );
    if bare != *packet {
        assert!(again.is_pure_ack());
        assert_eq!(again.seq, segment.end());
        let transport = &bare.bytes()[usize::from(again.transport_offset)..];
        let (source, destination) = (&again.source.address, &again.destination.address);
        assert!(checksum::tcp_is_right(source, destination, transport));
    }
}

/// An IP packet of given structure around a TCP header; `headers` are IPv6 extension headers as
/// (number, length in 8 bytes beyond the first, third and fourth byte).
fn ipv6_packet(headers: &[(u8, u8, [u8; 2])], last: u8, tcp: &[u8]) -> Vec<u8> {
    let numbers: Vec<u8> = headers.iter().map(|header| header.0).chain([last]).collect();
    let mut bytes = vec![0; ip::IPV6_HEADER];
    bytes[0] = 0x60;
    bytes[6] = numbers[0];
    for ((number, len, fields), next) in headers.iter().zip(&numbers[1..]) {
        let len = if *number == 44 { 0 } else { *len };
        bytes.extend_from_slice(&[*next, len, fields[0], fields[1], 0, 0, 0, 0]);
        bytes.resize(bytes.len() + usize::from(len) * 8, 0);
    }
    bytes.extend_from_slice(tcp);
    let payload_len = (bytes.len() - ip::IPV6_HEADER) as u16;
    bytes[4..6].copy_from_slice(&payload_len.to_be_bytes());
    bytes
}

fn ipv4_packet(option_words: u8, fragment: u16, protocol: u8, tcp: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 20 + usize::from(option_words) * 4];
    bytes[0] = 0x45 + option_words;
    bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
    bytes[9] = protocol;
    bytes.extend_from_slice(tcp);
    let total_len = bytes.len() as u16;
    bytes[2..4].copy_from_slice(&total_len.to_be_bytes());
    bytes
}

/// IP packets with and without TCP behind options, extension headers and fragment fields.
fn ip_packet() -> impl Strategy<Value = Vec<u8>> {
    let tcp = (0_u8..=10, 0_usize..40).prop_map(|(option_words, payload)| {
        let mut tcp = vec![1; 20 + usize::from(option_words) * 4 + payload];
        tcp[12] = (5 + option_words) << 4;
        tcp
    });
    let protocol = prop_oneof![4 => Just(6_u8), 1 => prop::sample::select(vec![1, 17, 50, 59])];
    let fragment = prop_oneof![4 => Just(0x4000), 1 => prop::sample::select(vec![0, 0x2000, 1])];
    let fragment_fields = prop_oneof![4 => Just([0, 6]), 1 => Just([0, 1]), 1 => Just([1, 0])];
    let header = prop_oneof![
        (prop::sample::select(vec![60_u8, 43]), 0_u8..4)
            .prop_map(|(kind, len)| (kind, len, [0; 2])),
        fragment_fields.prop_map(|fields| (44, 0, fields)),
    ];
    let headers = (any::<bool>(), vec_of(header, 0..=6)).prop_map(|(hop_by_hop, mut headers)| {
        if hop_by_hop {
            headers.insert(0, (0, 1, [0; 2]));
        }
        headers
    });
    prop_oneof![
        (0_u8..=10, fragment, protocol.clone(), tcp.clone()).prop_map(
            |(words, fragment, protocol, tcp)| { ipv4_packet(words, fragment, protocol, &tcp) }
        ),
        (headers, protocol, tcp).prop_map(|(headers, last, tcp)| ipv6_packet(&headers, last, &tcp)),
    ]
}

/// Offset of the TCP header and length of the payload, as etherparse has them.
fn etherparse_view(link_type: LinkType, bytes: &[u8]) -> Option<(usize, usize)> {
    let sliced = match link_type {
        LinkType::Ethernet => SlicedPacket::from_ethernet(bytes),
        LinkType::Ip | LinkType::Frame => SlicedPacket::from_ip(bytes),
    };
    let sliced = sliced.ok()?;
    assert!(matches!(sliced.net, Some(NetSlice::Ipv4(_) | NetSlice::Ipv6(_)) | None));
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { return None };
    let offset = tcp.slice().as_ptr() as usize - bytes.as_ptr() as usize;
    Some((offset, tcp.payload().len()))
}

fn own_view(packet: &Packet) -> Option<(usize, usize)> {
    let segment = Segment::parse(packet).ok()?;
    Some((usize::from(segment.transport_offset), segment.payload_len as usize))
}

/// An option list whose known kinds have their right lengths, perhaps cut short.
fn option_bytes() -> impl Strategy<Value = Vec<u8>> {
    let body = |kind: u8, len: usize| {
        vec_of(any::<u8>(), len).prop_map(move |body| [&[kind, len as u8 + 2][..], &body].concat())
    };
    let unknown = (9_u8..=28, 0_usize..6)
        .prop_filter("MD5 is known", |(kind, _)| *kind != 19)
        .prop_flat_map(move |(kind, len)| body(kind, len));
    let option = prop_oneof![
        4 => Just(vec![1]),
        1 => Just(vec![0]),
        2 => body(2, 2),
        2 => body(3, 1),
        2 => Just(vec![4, 2]),
        4 => (1_usize..=4).prop_flat_map(move |blocks| body(5, 8 * blocks)),
        4 => body(8, 8),
        4 => unknown,
    ];
    (vec_of(option, 0..8), 0_usize..=40).prop_map(|(options, cut)| {
        let mut bytes = options.concat();
        bytes.truncate(cut);
        bytes
    })
}

/// The same walk with smoltcp's reader of single options, which keeps three SACK blocks.
fn smoltcp_options(mut rest: &[u8]) -> Options {
    let mut options = Options::default();
    while let Ok((behind, option)) = TcpOption::parse(rest) {
        match option {
            TcpOption::EndOfList => break,
            TcpOption::MaxSegmentSize(mss) => options.mss = Some(mss),
            TcpOption::WindowScale(shift) => options.window_scale = Some(shift.min(14)),
            TcpOption::SackPermitted => options.sack_permitted = true,
            TcpOption::SackRange(blocks) => {
                let blocks = blocks.into_iter().flatten();
                options.sack = blocks.map(|(l, r)| (SeqNumber(l), SeqNumber(r))).collect();
            }
            TcpOption::TimeStamp { tsval, tsecr } => {
                options.timestamps = Some(Timestamps { value: tsval, echo: tsecr });
            }
            _ => {}
        }
        rest = behind;
    }
    options
}

#[test]
fn parsing_never_allocates() {
    let sack = [(SeqNumber(5), SeqNumber(9)); 3].into_iter().collect();
    let timestamps = Some(Timestamps::default());
    let options = Options { sack, timestamps, ..Options::default() };
    let packet = SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 0, 1, 2], 5000))
        .options(options)
        .build(LinkType::Ethernet);
    let counted = allocation_counter::measure(|| {
        assert_eq!(Segment::parse(&packet).unwrap().options, options);
    });
    assert_eq!(counted.count_total, 0);
    let control = allocation_counter::measure(|| drop(vec![1_u8]));
    assert_eq!(control.count_total, 1, "the counter counts");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_built_parses_back(plan in plan()) {
        let packet = plan.build();
        let segment = Segment::parse(&packet).unwrap();
        prop_assert_eq!(segment.source, plan.source);
        prop_assert_eq!(segment.destination, plan.destination);
        let numbers = (segment.seq.0, segment.ack.0, segment.window);
        prop_assert_eq!(numbers, plan.numbers);
        prop_assert_eq!(segment.flags, Flags(plan.flags).union(Flags::ACK));
        let payload_len = plan.payload.len() as u32 + plan.uncaptured;
        prop_assert_eq!(segment.payload_len, payload_len);
        prop_assert_eq!(&packet.bytes()[usize::from(segment.payload_offset)..], &plan.payload[..]);
        prop_assert_eq!(packet.wire_len(), u32::from(segment.payload_offset) + payload_len);
        prop_assert!(plan.options.sack.as_slice().starts_with(segment.options.sack.as_slice()));
        let expected = Options { sack: segment.options.sack, ..plan.options };
        prop_assert_eq!(segment.options, expected);
        check_invariants(&packet);
    }

    #[test]
    fn built_checksums_are_right_to_smoltcp_and_etherparse(plan in plan()) {
        let plan = Plan { uncaptured: 0, ..plan };
        let packet = plan.build();
        let segment = Segment::parse(&packet).unwrap();
        let transport = &packet.bytes()[usize::from(segment.transport_offset)..];
        let (source, destination) = (segment.source, segment.destination);
        let tcp = TcpPacket::new_checked(transport).unwrap();
        let addresses = (smoltcp_address(source), smoltcp_address(destination));
        prop_assert!(tcp.verify_checksum(&addresses.0, &addresses.1));
        let (source, destination) = (&source.address, &destination.address);
        prop_assert!(checksum::tcp_is_right(source, destination, transport));

        let network = usize::from(segment.network_offset)..usize::from(segment.transport_offset);
        let header = &packet.bytes()[network];
        if header.len() == 20 {
            let sum = etherparse::checksum::Sum16BitWords::new().add_slice(header);
            prop_assert_eq!(sum.ones_complement(), 0);
        }
    }

    #[test]
    fn uncaptured_payload_counts_as_zeros(plan in plan()) {
        let mut whole = plan.payload.clone();
        whole.resize(whole.len() + plan.uncaptured as usize, 0);
        let captured = plan.build();
        let all = Plan { payload: whole, uncaptured: 0, ..plan }.build();
        prop_assert_eq!(captured.wire_len(), all.wire_len());
        prop_assert!(all.bytes().starts_with(captured.bytes()));
    }

    #[test]
    fn etherparse_finds_the_same_tcp(
        link_type in link_type(),
        tags in vec_of(prop::sample::select(vec![0x8100_u16, 0x88a8]), 0..=2),
        network in ip_packet(),
        padding in 0_usize..10,
        flip in option::of((0_usize..100, any::<u8>())),
    ) {
        let mut bytes = vec![];
        if link_type == LinkType::Ethernet {
            bytes.resize(12, 0);
            for tag in tags {
                bytes.extend_from_slice(&[(tag >> 8) as u8, tag as u8, 0, 1]);
            }
            let is_ipv4 = network[0] >> 4 == 4;
            bytes.extend_from_slice(if is_ipv4 { &[0x08, 0x00] } else { &[0x86, 0xdd] });
        }
        bytes.extend_from_slice(&network);
        bytes.resize(bytes.len() + padding, 0);
        let packet = Packet::new(link_type, bytes.clone().into());
        prop_assert_eq!(own_view(&packet), etherparse_view(link_type, &bytes));

        // A wrong byte may be judged differently, but never read differently.
        if let Some((at, value)) = flip && let Some(byte) = bytes.get_mut(at) {
            *byte = value;
            let own = own_view(&Packet::new(link_type, bytes.clone().into()));
            if let (Some(own), Some(theirs)) = (own, etherparse_view(link_type, &bytes)) {
                prop_assert_eq!(own, theirs);
            }
        }
    }

    #[test]
    fn smoltcp_reads_the_same_options(bytes in option_bytes()) {
        let own = Options::parse(&bytes);
        let three = own.sack.as_slice().iter().copied().take(3).collect();
        prop_assert_eq!(Options { sack: three, ..own }, smoltcp_options(&bytes));
    }

    #[test]
    fn smoltcp_orders_sequence_numbers_alike(
        a: u32,
        near in -3_i32..=3,
        far: u32,
        step in 0..1_u32 << 31,
    ) {
        for b in [a.wrapping_add_signed(near), far, a ^ (1 << 31)] {
            let [x, y] = [a, b].map(|n| smoltcp::wire::TcpSeqNumber(n as i32));
            prop_assert_eq!(SeqNumber(a).partial_cmp(&SeqNumber(b)), x.partial_cmp(&y));
            prop_assert_eq!(SeqNumber(a) + step, SeqNumber((x + step as usize).0 as u32));
        }
    }

    #[test]
    fn incremental_updates_equal_a_fresh_sum(
        mut bytes in vec_of(any::<u8>(), 8..64),
        at in 0_usize..64,
        (short, long) in any::<(u16, u32)>(),
    ) {
        // A sum of nothing but zeros has two representations; headers are never that.
        bytes[0] = 0x45;
        let at = 2 + at % (bytes.len() - 6) / 2 * 2;
        let before = checksum::internet(&bytes);
        let old: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
        bytes[at..at + 4].copy_from_slice(&long.to_be_bytes());
        let between = checksum::update_u32(before, u32::from_be_bytes(old), long);
        prop_assert_eq!(between, checksum::internet(&bytes));
        bytes[at..at + 2].copy_from_slice(&short.to_be_bytes());
        let after = checksum::update_u16(between, (long >> 16) as u16, short);
        prop_assert_eq!(after, checksum::internet(&bytes));
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in vec_of(any::<u8>(), 0..200), more in 0_u32..100_000) {
        for link_type in LINK_TYPES {
            let captured = bytes.len() as u32;
            check_invariants(&Packet::new(link_type, bytes.clone().into()));
            check_invariants(&Packet::truncated(link_type, bytes.clone().into(), captured + more));
        }
    }

    #[test]
    fn mutated_packets_never_panic(
        plan in plan(),
        flips in vec_of((0_usize..120, any::<u8>()), 0..4),
        cut in 0_usize..200,
        wire_len in 0_u32..70_000,
    ) {
        let mut bytes = plan.build().bytes().to_vec();
        for (at, bits) in flips {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= bits;
            }
        }
        bytes.truncate(cut);
        check_invariants(&Packet::truncated(plan.link_type, bytes.into(), wire_len));
    }

    #[test]
    fn a_cut_never_shows_other_fields(plan in plan(), cut in 0_usize..200) {
        let whole = plan.build();
        let bytes = whole.shared_bytes().slice(..cut.min(whole.bytes().len()));
        let cut = Packet::truncated(plan.link_type, bytes, whole.wire_len());
        match Segment::parse(&cut) {
            Ok(segment) => prop_assert_eq!(segment, Segment::parse(&whole).unwrap()),
            Err(bypass) => prop_assert_eq!(bypass, Bypass::Truncated),
        }
        prop_assert_eq!(Network::parse(&whole).unwrap().source, plan.source.address);
    }
}

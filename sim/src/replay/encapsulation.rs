//! TCP in packets that agents do not look into: tunnels, labels, sessions.

use super::unread::Unread;
use airmend_proto::wire::ip::Network;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{LinkType, Packet};
use std::fmt;

/// Headers that are walked at most, those of VLANs and labels among them.
const MAX_LAYERS: usize = 12;
/// Extension headers of GTP-U that are walked at most.
const MAX_EXTENSIONS: usize = 4;

/// What TCP was in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encapsulation {
    /// A PPP session over Ethernet (RFC 2516).
    Pppoe,
    /// PPP (RFC 1661).
    Ppp,
    /// Labels (RFC 3032), with or without a pseudowire (RFC 4448).
    Mpls,
    /// IP in IP (RFC 2003, RFC 4213, RFC 2473).
    IpInIp,
    /// GRE (RFC 2784, RFC 2890), also of PPTP (RFC 2637).
    Gre,
    /// VXLAN (RFC 7348).
    Vxlan,
    /// Geneve (RFC 8926).
    Geneve,
    /// The user plane of mobile networks (3GPP TS 29.281).
    GtpU,
    /// Data between a wireless controller and its access points (RFC 5415).
    Capwap,
}

impl Encapsulation {
    /// The name in JSON lines; stable.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pppoe => "pppoe",
            Self::Ppp => "ppp",
            Self::Mpls => "mpls",
            Self::IpInIp => "ip_in_ip",
            Self::Gre => "gre",
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
            Self::GtpU => "gtp_u",
            Self::Capwap => "capwap",
        }
    }
}

impl fmt::Display for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pppoe => "PPPoE",
            Self::Ppp => "PPP",
            Self::Mpls => "MPLS",
            Self::IpInIp => "IP in IP",
            Self::Gre => "GRE",
            Self::Vxlan => "VXLAN",
            Self::Geneve => "Geneve",
            Self::GtpU => "GTP-U",
            Self::Capwap => "CAPWAP",
        })
    }
}

/// A packet whose TCP header can be read, and what it was in: the outermost of several.
pub(super) type Inner = (Packet, Option<Encapsulation>);

/// The TCP packet that a captured packet is or carries: from its IP header on, where it is not the
/// packet itself. An IP length of 0, which segmentation offload leaves to the interface, becomes
/// that of the frame.
pub(super) fn tcp_in(packet: &Packet) -> Result<Inner, (Option<Encapsulation>, Unread)> {
    if Segment::parse(packet).is_ok() {
        return Ok((packet.clone(), None));
    }
    let mut walk = Walk { packet, at: 0, within: None };
    let mut layer = match packet.link_type() {
        LinkType::Ethernet => Layer::Ethernet,
        LinkType::Ip => Layer::Ip,
        LinkType::Frame => return Err((None, Unread::NotIp)),
    };
    for _ in 0..MAX_LAYERS {
        match walk.step(layer) {
            Ok(Layer::Tcp(packet)) => return Ok((packet, walk.within)),
            Ok(next) => layer = next,
            Err(unread) => return Err((walk.within, unread)),
        }
    }
    Err((walk.within, Unread::NotTcp))
}

/// What follows.
enum Layer {
    Ethernet,
    /// What an EtherType names.
    Type(u16),
    Ppp,
    Wifi,
    Ip,
    /// TCP in this IP packet.
    Tcp(Packet),
}

struct Walk<'a> {
    packet: &'a Packet,
    at: usize,
    within: Option<Encapsulation>,
}

impl Walk<'_> {
    /// The bytes of a header, which is passed.
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Unread> {
        let bytes = self.peek()?;
        self.at += N;
        Ok(bytes)
    }

    fn peek<const N: usize>(&self) -> Result<[u8; N], Unread> {
        let rest = self.packet.bytes().get(self.at..).ok_or(Unread::Truncated)?;
        rest.first_chunk().copied().ok_or(Unread::Truncated)
    }

    fn enter(&mut self, encapsulation: Encapsulation, next: Layer) -> Result<Layer, Unread> {
        self.within.get_or_insert(encapsulation);
        Ok(next)
    }

    fn step(&mut self, layer: Layer) -> Result<Layer, Unread> {
        match layer {
            Layer::Ethernet => {
                self.at += 12;
                Ok(Layer::Type(u16::from_be_bytes(self.take()?)))
            }
            Layer::Type(ethertype) => self.of_type(ethertype),
            Layer::Ppp => self.ppp(),
            Layer::Wifi => self.wifi(),
            Layer::Ip => self.ip(),
            Layer::Tcp(packet) => Ok(Layer::Tcp(packet)),
        }
    }

    fn of_type(&mut self, ethertype: u16) -> Result<Layer, Unread> {
        match ethertype {
            0x0800 | 0x86dd => Ok(Layer::Ip),
            // VLAN tags: those of IEEE 802.1Q and 802.1ad, and what stood in their place before.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 | 0x9300 => {
                let [_, _, t0, t1] = self.take()?;
                Ok(Layer::Type(u16::from_be_bytes([t0, t1])))
            }
            0x8847 | 0x8848 => {
                let [_, _, bottom, _] = self.take()?;
                let next = match self.peek()? {
                    _ if bottom & 1 == 0 => Layer::Type(ethertype),
                    [first, _, _, _] if matches!(first >> 4, 4 | 6) => Layer::Ip,
                    // The control word of a pseudowire without sequence numbers.
                    [0, 0, _, _] => {
                        self.at += 4;
                        Layer::Ethernet
                    }
                    _ => Layer::Ethernet,
                };
                self.enter(Encapsulation::Mpls, next)
            }
            0x8864 => {
                self.at += 6;
                self.enter(Encapsulation::Pppoe, Layer::Ppp)
            }
            0x880b => self.enter(Encapsulation::Ppp, Layer::Ppp),
            0x6558 => Ok(Layer::Ethernet),
            _ => Err(Unread::NotIp),
        }
    }

    fn ppp(&mut self) -> Result<Layer, Unread> {
        if self.peek()? == [0xff, 0x03] {
            self.at += 2;
        }
        // One byte where the field is compressed (RFC 1661 §6.5).
        let [first] = self.take()?;
        let protocol = match first & 1 {
            1 => u16::from(first),
            _ => u16::from_be_bytes([first, self.take::<1>()?[0]]),
        };
        match protocol {
            0x0021 | 0x0057 => Ok(Layer::Ip),
            0x0281 => Ok(Layer::Type(0x8847)),
            _ => Err(Unread::NotIp),
        }
    }

    fn ip(&mut self) -> Result<Layer, Unread> {
        let packet = self.ip_packet();
        let unread = match Segment::parse(&packet) {
            Ok(_) => return Ok(Layer::Tcp(packet)),
            Err(bypass) => Unread::from(bypass),
        };
        let network = Network::walk(&packet)?;
        if network.is_fragment {
            return Err(Unread::Fragment);
        }
        self.at += usize::from(network.transport_offset);
        match network.protocol {
            4 | 41 => self.enter(Encapsulation::IpInIp, Layer::Ip),
            17 => self.udp(),
            47 => self.gre(),
            50 => Err(Unread::Encrypted),
            _ => Err(unread),
        }
    }

    /// The rest of the packet, with a length.
    fn ip_packet(&self) -> Packet {
        let bytes = self.packet.shared_bytes();
        let bytes = bytes.slice(self.at.min(bytes.len())..);
        let wire_len = self.packet.wire_len().saturating_sub(self.at as u32);
        let (field, length) = match *bytes {
            [0x40..=0x4f, _, 0, 0, ..] => (2, u16::try_from(wire_len)),
            // Behind hop-by-hop options there may be a jumbo payload.
            [0x60..=0x6f, _, _, _, 0, 0, 6, ..] => (4, u16::try_from(wire_len.saturating_sub(40))),
            _ => return Packet::truncated(LinkType::Ip, bytes, wire_len),
        };
        let mut patched = bytes.to_vec();
        if let Ok(length) = length {
            patched[field..field + 2].copy_from_slice(&length.to_be_bytes());
        }
        Packet::truncated(LinkType::Ip, patched.into(), wire_len)
    }

    fn gre(&mut self) -> Result<Layer, Unread> {
        let [flags, version, t0, t1] = self.take()?;
        let is_pptp = version & 7 == 1;
        if flags & 0x40 != 0 || version & 7 > 1 {
            return Err(Unread::NotTcp);
        }
        // Checksum, key, sequence number, and PPTP's acknowledgment number.
        let present = (flags & 0xb0).count_ones() + u32::from(is_pptp && version & 0x80 != 0);
        self.at += 4 * present as usize;
        self.enter(Encapsulation::Gre, Layer::Type(u16::from_be_bytes([t0, t1])))
    }

    fn udp(&mut self) -> Result<Layer, Unread> {
        let [s0, s1, d0, d1, _, _, _, _] = self.take()?;
        let ports = [[s0, s1], [d0, d1]].map(u16::from_be_bytes);
        match ports {
            // Also Linux's number from before the standard.
            [_, 4789 | 8472] => {
                let [flags, ..] = self.take::<8>()?;
                if flags & 0x08 == 0 {
                    return Err(Unread::NotTcp);
                }
                self.enter(Encapsulation::Vxlan, Layer::Ethernet)
            }
            [_, 6081] => {
                let [options, _, t0, t1, ..] = self.take::<8>()?;
                if options >> 6 != 0 {
                    return Err(Unread::NotTcp);
                }
                self.at += 4 * usize::from(options & 0x3f);
                self.enter(Encapsulation::Geneve, Layer::Type(u16::from_be_bytes([t0, t1])))
            }
            [_, 2152] | [2152, _] => self.gtp_u(),
            [_, 5247] | [5247, _] => self.capwap(),
            _ => Err(Unread::NotTcp),
        }
    }

    fn gtp_u(&mut self) -> Result<Layer, Unread> {
        let [flags, kind, ..] = self.take::<8>()?;
        // Version 1, and a packet of a user.
        if flags >> 4 != 3 || kind != 255 {
            return Err(Unread::NotTcp);
        }
        self.within.get_or_insert(Encapsulation::GtpU);
        if flags & 7 != 0 {
            let [_, _, _, mut extension] = self.take()?;
            for _ in 0..MAX_EXTENSIONS {
                if flags & 4 == 0 || extension == 0 {
                    break;
                }
                let [words] = self.peek()?;
                self.at += (4 * usize::from(words)).max(4) - 1;
                [extension] = self.take()?;
            }
        }
        Ok(Layer::Ip)
    }

    fn capwap(&mut self) -> Result<Layer, Unread> {
        let [preamble, length, format, flags] = self.peek()?;
        self.within.get_or_insert(Encapsulation::Capwap);
        match preamble {
            // A fragment, then a message that only keeps the session.
            0 if flags & 0x80 != 0 => Err(Unread::Fragment),
            0 if flags & 0x08 != 0 => Err(Unread::NotIp),
            0 => {
                self.at += 4 * usize::from(length >> 3);
                Ok(if format & 1 == 0 { Layer::Ethernet } else { Layer::Wifi })
            }
            // DTLS.
            1 => Err(Unread::Encrypted),
            _ => Err(Unread::NotTcp),
        }
    }

    /// A frame of IEEE 802.11-2020 §9.2.
    fn wifi(&mut self) -> Result<Layer, Unread> {
        const DATA: u8 = 0x08;
        let (control, flags) = match self.peek()? {
            // Controllers that turn the two bytes around.
            [flags, control] if flags & 0x0c != DATA && control & 0x0c == DATA => (control, flags),
            [control, flags] => (control, flags),
        };
        if control & 0x0c != DATA || control & 0x40 != 0 {
            return Err(Unread::NotIp);
        }
        if flags & 0x40 != 0 {
            return Err(Unread::Encrypted);
        }
        let is_qos = control & 0x80 != 0;
        let has_ht_control = is_qos && flags & 0x80 != 0;
        let has_fourth_address = flags & 3 == 3;
        self.at += 24 + 6 * usize::from(has_fourth_address) + 2 * usize::from(is_qos);
        self.at += 4 * usize::from(has_ht_control);
        match self.take()? {
            [0xaa, 0xaa, 3, 0, 0, 0, t0, t1] => Ok(Layer::Type(u16::from_be_bytes([t0, t1]))),
            _ => Err(Unread::NotIp),
        }
    }
}

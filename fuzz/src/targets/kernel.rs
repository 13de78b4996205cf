//! The gateway's program, run by the kernel, and our parser, on the same bytes of a mobile: where
//! ours reads a segment of a known flow, the program's verdict is the one that follows from it;
//! where ours reads none, the program has read none either. Without root it does nothing.

#[path = "../../../live/tests/kernel/mod.rs"]
mod program;

use self::program::{Kernel, Verdict};
use airmend_proto::wire::flow::{Endpoint, FlowKey};
use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{LinkType, Packet, Port};
use std::cell::RefCell;

thread_local! {
    /// None where this user may not load it; `tools/fuzz` looks for the line that says so.
    static KERNEL: RefCell<Option<Kernel>> = RefCell::new(
        Kernel::load().map_err(|lacks| eprintln!("fuzz: kernel is not run: {lacks}")).ok(),
    );
}

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// With less than whole IP headers, recent kernels refuse a test run; TCP needs as much anyway.
const MIN_BYTES: usize = ETHERNET + 40;
/// What a test run takes at most (3 kB less than a page), and a report holds whole.
const MAX_BYTES: usize = 256;

/// Why this user may not load it, if so.
pub fn lacks() -> Option<String> {
    Kernel::load().err()
}

pub(crate) fn fuzz(data: &[u8]) {
    if (MIN_BYTES..=MAX_BYTES).contains(&data.len()) {
        KERNEL.with_borrow_mut(|kernel| kernel.iter_mut().for_each(|kernel| compare(kernel, data)));
    }
}

fn compare(kernel: &mut Kernel, data: &[u8]) {
    let packet = Packet::new(LinkType::Ethernet, data.to_vec().into());
    match Segment::parse(&packet) {
        // The program leaves extension headers alone.
        Ok(segment) if has_extension_headers(&packet, &segment) => {
            let key = FlowKey::of(&segment, Port::Air);
            kernel.note(&key);
            assert_eq!(kernel.run(data), Verdict::Passes { reported: false });
        }
        Ok(segment) => {
            let key = FlowKey::of(&segment, Port::Air);
            kernel.note(&key);
            // Twice: no ACK of the flow is known the first time.
            for acked in [None, Some(())] {
                let known = kernel.acked(&key);
                assert!(acked.is_some() || known.is_none());
                let options = &data[usize::from(segment.transport_offset) + 20..];
                let end = usize::from(segment.payload_offset - segment.transport_offset) - 20;
                let options = options.get(..end).expect("all headers are captured");
                let is_plain = end == 0 || end == 12 && options.starts_with(&[1, 1, 8, 10]);
                let (verdict, is_highest) = expected(&segment, is_plain, known);
                assert_eq!(kernel.run(data), verdict, "{segment:?}");
                if is_highest {
                    assert_eq!(kernel.acked(&key), Some(u64::from(segment.ack.0)));
                }
            }
        }
        Err(_) => {
            let Some(key) = usual_flow(data) else { return };
            kernel.note(&key);
            assert_eq!(kernel.run(data), Verdict::Passes { reported: false });
            assert_eq!(kernel.acked(&key), None);
        }
    }
}

/// The verdict on a segment of a known flow as `live/src/bpf/gateway.bpf.c` has it, by our own
/// reading of the segment; and whether its ACK is the highest.
fn expected(segment: &Segment, has_plain_options: bool, acked: Option<u64>) -> (Verdict, bool) {
    let has = |flags| segment.flags.intersects(flags);
    let connects = has(Flags::SYN.union(Flags::RST));
    if !has(Flags::ACK) && !connects {
        return (Verdict::Passes { reported: false }, false);
    }
    let acked = acked.filter(|_| !has(Flags::SYN));
    let advances = acked.is_some_and(|acked| (segment.ack.0.wrapping_sub(acked as u32) as i32) > 0);
    let is_pure = segment.payload_len == 0 && !connects && !has(Flags::FIN);
    let verdict = match has_plain_options {
        true if is_pure && (has(Flags::URG) || !advances) => Verdict::Diverted,
        false if is_pure => Verdict::Diverted,
        false if !connects => Verdict::Redirected,
        _ => {
            let is_news = advances || acked.is_none() || connects || has(Flags::FIN);
            Verdict::Passes { reported: is_news }
        }
    };
    (verdict, has(Flags::ACK) && !has(Flags::RST) && (advances || acked.is_none()))
}

fn has_extension_headers(packet: &Packet, segment: &Segment) -> bool {
    let (network, transport) = (segment.network_offset, segment.transport_offset);
    packet.bytes()[usize::from(network)] >> 4 == 6 && transport - network != 40
}

/// The flow of what stands where a segment's addresses and ports usually do.
fn usual_flow(data: &[u8]) -> Option<FlowKey> {
    let ip = data.get(ETHERNET..)?;
    let (source, destination, transport) = match ip.first()? >> 4 {
        4 => {
            let mapped = |at: usize| {
                let mut long = [0; 16];
                long[10..12].fill(0xff);
                long[12..].copy_from_slice(ip.get(at..at + 4)?);
                Some(long)
            };
            (mapped(12)?, mapped(16)?, usize::from(ip.first()? & 15) * 4)
        }
        _ => (*ip.get(8..)?.first_chunk()?, *ip.get(24..)?.first_chunk()?, 40),
    };
    let port = |at: usize| Some(u16::from_be_bytes(*ip.get(at..)?.first_chunk()?));
    let end = |address, port| Endpoint { address, port };
    let (source, destination) =
        (end(source, port(transport)?), end(destination, port(transport + 2)?));
    Some(FlowKey { wired: destination, air: source })
}

//! The queue at the egress of an interface, by netlink: what stands there, and a shaping queue of
//! this program's own.
//!
//! ```text
//! htb 6d65:                    the handle names this program
//!   └ class 6d65:3             the rate
//!       ├ class 6d65:1 prio 0  repairs: a FIFO
//!       └ class 6d65:2 prio 1  everything else: cake, fq_codel, or a short FIFO
//! ```
//!
//! The two leaves have next to no rate of their own and may borrow all of the parent's: whenever
//! the parent may send, the first in priority does. Read `linux/pkt_sched.h` and the kernel's
//! `net/sched/sch_htb.c` before working on this file.

use crate::netlink::{Asked, ROOT, TCA_KIND, TRAFFIC_CONTROL, ask, attribute, attributes, word};
use airmend_proto::named;
use std::io;

/// The handle of this program's root queue, by which it finds that of a killed run.
const OURS: u32 = 0x6d65_0000;
/// The class of repairs, as `SO_PRIORITY` takes it.
pub(crate) const FAST_CLASS: u32 = OURS | 1;
/// The class of everything else, and the class above both.
const CLASS: u32 = OURS | 2;
const PARENT: u32 = OURS | 3;

/// The highest rate, in bits per second: HTB has 32 bits for bytes per second.
pub(crate) const MAX_RATE: u64 = u32::MAX as u64 * 8;
/// A full frame, in bytes.
const FRAME: u64 = 1514;
/// What a FIFO holds, as a time: with no discipline that manages the delay, a short queue does.
const FIFO_SECONDS: f64 = 0.03;
/// Frames that a FIFO holds at least and at most, and the FIFO of repairs.
const MIN_FIFO: u64 = 20;
const MAX_FIFO: u64 = 1000;
const REPAIRS_FIFO: u32 = 1000;
/// The rate of a leaf of its own, in bytes per second.
const LEAF_RATE: u32 = 1000;

const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_FW_CLASSID: u16 = 1;
const TCA_CAKE_BASE_RATE64: u16 = 2;
/// `TC_LINKLAYER_ETHERNET`: HTB needs no table of rates.
const ETHERNET: u8 = 1;
/// Nanoseconds of a tick of the packet scheduler.
const TICK: u64 = 64;
const CREATE: u16 = (libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
const ACK: u16 = libc::NLM_F_ACK as u16;

/// What queues the data below HTB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaf {
    /// CAKE without its shaper: flow queueing that also splits super-packets.
    Cake,
    /// FQ-CoDel (RFC 8290).
    FqCodel,
    /// A FIFO of 30 ms.
    Fifo,
}

named! { Leaf, "is no queue": Cake = "cake", FqCodel = "fq_codel", Fifo = "pfifo" }

/// The queue at the root of an interface's egress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// Its kind, such as `htb`.
    pub(crate) kind: String,
    handle: u32,
    /// It limits the rate.
    pub(crate) shapes: bool,
}

impl Root {
    /// The queue of an interface; `None` if the kernel does not tell.
    pub(crate) fn of(index: u32) -> Option<Self> {
        // To a request for one queue, some kernels answer all who listen for changes.
        let is_it =
            |message: &[u8]| (word(message, 4), word(message, 12)) == (Some(index), Some(ROOT));
        let all = dump(libc::RTM_GETQDISC, index).ok()?;
        Self::read(all.iter().find(|message| is_it(message))?)
    }

    fn read(message: &[u8]) -> Option<Self> {
        let all = attributes(message.get(TRAFFIC_CONTROL..)?);
        let find = |which| all.iter().find(|(found, _)| *found == which).map(|(_, value)| *value);
        let kind = std::ffi::CStr::from_bytes_until_nul(find(TCA_KIND)?).ok()?;
        let kind = kind.to_string_lossy().into_owned();
        let shapes = match kind.as_str() {
            "htb" | "tbf" | "hfsc" => true,
            "cake" => cake_rate(find(TCA_OPTIONS).unwrap_or_default()) > 0,
            _ => false,
        };
        Some(Self { kind, handle: word(message, 8)?, shapes })
    }

    /// The kernel has put it there by itself.
    pub(crate) fn is_default(&self) -> bool {
        self.handle == 0
    }

    /// This program has put it there.
    pub(crate) fn is_ours(&self) -> bool {
        self.handle == OURS && self.kind == "htb"
    }
}

fn cake_rate(options: &[u8]) -> u64 {
    let rate = attributes(options).into_iter().find(|(which, _)| *which == TCA_CAKE_BASE_RATE64);
    let bytes = rate.and_then(|(_, value)| value.first_chunk().copied());
    bytes.map_or(0, u64::from_ne_bytes)
}

/// Bytes that have left this program's queue; `None` if it is not there.
pub(crate) fn sent(index: u32) -> Option<u64> {
    let all = dump(libc::RTM_GETTCLASS, index).ok()?;
    let class = all.iter().find(|message| word(message, 8) == Some(PARENT))?;
    let find = |bytes, wanted| attributes(bytes).into_iter().find(|(which, _)| *which == wanted);
    let (_, stats) = find(class.get(TRAFFIC_CONTROL..)?, TCA_STATS2)?;
    let (_, basic) = find(stats, TCA_STATS_BASIC)?;
    Some(u64::from_ne_bytes(*basic.first_chunk()?))
}

/// All queues, or all classes of this interface.
fn dump(kind: u16, index: u32) -> io::Result<Vec<Vec<u8>>> {
    let asked = Asked { index, handle: 0, parent: 0, info: 0, kind: None };
    ask(kind, libc::NLM_F_DUMP as u16, &asked.bytes())
}

/// Puts the queue at an interface's root, with this rate in bits per second, in place of the
/// kernel's default. With `mark`, a filter also gives the class of repairs what bears it; then the
/// second value is whether this kernel has such filters.
///
/// # Errors
/// The kernel lacks HTB, or refuses; nothing is left behind.
pub(crate) fn install(index: u32, rate_bps: u64, mark: Option<u32>) -> io::Result<(Leaf, bool)> {
    let options = [3, 10, CLASS & 0xffff, 0, 0].map(u32::to_ne_bytes).concat();
    let options = attribute(TCA_HTB_INIT, &options);
    let root = Asked { index, handle: OURS, parent: ROOT, info: 0, kind: Some("htb") };
    let flags = CREATE & !(libc::NLM_F_EXCL as u16) | libc::NLM_F_REPLACE as u16;
    ask(libc::RTM_NEWQDISC, flags, &with_options(&root, &options))?;
    let filled = fill(index, rate_bps, mark);
    if filled.is_err() {
        remove(index).ok();
    }
    filled
}

fn fill(index: u32, rate_bps: u64, mark: Option<u32>) -> io::Result<(Leaf, bool)> {
    change_class(index, CREATE, PARENT, &parent(rate_bps))?;
    for (class, prio) in [(FAST_CLASS, 0), (CLASS, 1)] {
        let most = ratespec(u32::MAX);
        let [small, large] = [FRAME * 1_000_000_000 / u64::from(LEAF_RATE) / TICK, FRAME]
            .map(|ticks| u32::try_from(ticks).unwrap_or(u32::MAX));
        change_class(index, CREATE, class, &class_options(LEAF_RATE, most, [small, large], prio))?;
    }
    let limit = REPAIRS_FIFO.to_ne_bytes();
    change_leaf(index, CREATE, FAST_CLASS, "pfifo", &limit)?;
    let managed = [Leaf::Cake, Leaf::FqCodel]
        .into_iter()
        .find(|leaf| change_leaf(index, CREATE, CLASS, leaf.name(), &[]).is_ok());
    let leaf = managed.unwrap_or(Leaf::Fifo);
    if leaf == Leaf::Fifo {
        change_leaf(index, CREATE, CLASS, "pfifo", &fifo_limit(rate_bps).to_ne_bytes())?;
    }
    let has_filter = mark.is_some_and(|mark| add_filter(index, mark).is_ok());
    Ok((leaf, has_filter))
}

/// Changes the rate, in bits per second, of a queue that [`install`] has set up with this leaf.
///
/// # Errors
/// Another program has removed it.
pub(crate) fn set_rate(index: u32, rate_bps: u64, leaf: Leaf) -> io::Result<()> {
    change_class(index, ACK, PARENT, &parent(rate_bps))?;
    match leaf {
        Leaf::Cake | Leaf::FqCodel => Ok(()),
        Leaf::Fifo => change_leaf(index, ACK, CLASS, "pfifo", &fifo_limit(rate_bps).to_ne_bytes()),
    }
}

/// Removes the queue if it is this program's; the kernel puts its default there.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn remove(index: u32) -> io::Result<()> {
    if !Root::of(index).is_some_and(|root| root.is_ours()) {
        return Ok(());
    }
    let asked = Asked { index, handle: OURS, parent: ROOT, info: 0, kind: None };
    ask(libc::RTM_DELQDISC, ACK, &asked.bytes()).map(drop)
}

fn fifo_limit(rate_bps: u64) -> u32 {
    let frames = rate_bps as f64 * FIFO_SECONDS / 8.0 / FRAME as f64;
    (frames as u64).clamp(MIN_FIFO, MAX_FIFO) as u32
}

fn with_options(asked: &Asked, options: &[u8]) -> Vec<u8> {
    [asked.bytes(), attribute(TCA_OPTIONS, options)].concat()
}

fn change_class(index: u32, flags: u16, class: u32, options: &[u8]) -> io::Result<()> {
    let parent = if class == PARENT { OURS } else { PARENT };
    let asked = Asked { index, handle: class, parent, info: 0, kind: Some("htb") };
    let options = attribute(TCA_HTB_PARMS, options);
    ask(libc::RTM_NEWTCLASS, flags, &with_options(&asked, &options)).map(drop)
}

fn change_leaf(
    index: u32,
    flags: u16,
    class: u32,
    kind: &'static str,
    options: &[u8],
) -> io::Result<()> {
    let asked = Asked { index, handle: 0, parent: class, info: 0, kind: Some(kind) };
    let body = if options.is_empty() { asked.bytes() } else { with_options(&asked, options) };
    ask(libc::RTM_NEWQDISC, flags, &body).map(drop)
}

/// What bears the mark is a repair.
fn add_filter(index: u32, mark: u32) -> io::Result<()> {
    let protocol = u32::from((libc::ETH_P_ALL as u16).to_be());
    let info = 1 << 16 | protocol;
    let asked = Asked { index, handle: mark, parent: OURS, info, kind: Some("fw") };
    let options = attribute(TCA_FW_CLASSID, &FAST_CLASS.to_ne_bytes());
    ask(libc::RTM_NEWTFILTER, CREATE, &with_options(&asked, &options)).map(drop)
}

/// `struct tc_htb_opt` of the class above both, whose bucket holds a frame or a millisecond.
fn parent(rate_bps: u64) -> Vec<u8> {
    let rate = u32::try_from(rate_bps / 8).unwrap_or(u32::MAX).max(1);
    let frame = (FRAME * 1_000_000_000 / u64::from(rate)).max(1_000_000) / TICK;
    let bucket = u32::try_from(frame).unwrap_or(u32::MAX);
    class_options(rate, ratespec(rate), [bucket, bucket], 0)
}

/// `struct tc_htb_opt`: rates in bytes per second, buckets in ticks.
fn class_options(rate: u32, ceil: [u8; 12], buckets: [u32; 2], prio: u32) -> Vec<u8> {
    let [bucket, ceil_bucket] = buckets;
    let words = [bucket, ceil_bucket, FRAME as u32, 0, prio].map(u32::to_ne_bytes).concat();
    [&ratespec(rate)[..], &ceil, &words].concat()
}

/// `struct tc_ratespec` of a rate in bytes per second.
fn ratespec(rate: u32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[1] = ETHERNET;
    bytes[8..].copy_from_slice(&rate.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_as_long_as_the_kernels_structures() {
        assert_eq!(parent(20_000_000).len(), 44);
        // A frame takes 606 µs at 20 Mb/s: a millisecond; at 1 Mb/s 12.1 ms.
        for (rate_bps, nanos) in [(20_000_000, 1_000_000), (1_000_000, 12_112_000)] {
            assert_eq!(word(&parent(rate_bps), 24), Some((nanos / TICK) as u32));
        }
    }

    #[test]
    fn a_fifo_is_short_in_time() {
        assert_eq!(fifo_limit(20_000_000), 49);
        assert_eq!((fifo_limit(100_000), fifo_limit(MAX_RATE)), (20, 1000));
    }

    #[test]
    fn a_root_is_the_kernels_an_administrators_or_ours() {
        let root = |kind: &'static str, handle, options: &[u8]| {
            let asked = Asked { index: 1, handle, parent: ROOT, info: 0, kind: Some(kind) };
            Root::read(&with_options(&asked, options)).unwrap()
        };
        let default = root("fq_codel", 0, &[]);
        assert!(default.is_default() && !default.is_ours() && !default.shapes);
        let theirs = root("htb", 0x1_0000, &[]);
        assert!(!theirs.is_default() && !theirs.is_ours() && theirs.shapes);
        assert!(root("htb", OURS, &[]).is_ours());
        let cake = |rate: u64| attribute(TCA_CAKE_BASE_RATE64, &rate.to_ne_bytes());
        assert!(root("cake", 0x8001_0000, &cake(1000)).shapes);
        assert!(!root("cake", 0x8001_0000, &cake(0)).shapes);
    }

    #[test]
    fn an_interface_that_is_not_there_has_no_queue() {
        let none = u32::MAX >> 1;
        assert_eq!(Root::of(none), None);
        assert!(install(none, 1_000_000, None).is_err());
    }
}

//! Any bytes as datagrams and messages of a tunnel, without a key: what is read is written as it
//! was, a frame in parts comes back whole among parts that do not belong to it, and never changed.

use airmend_live::tunnel::fuzzing::{Whole, cut, read_datagram};

pub(crate) fn fuzz(data: &[u8]) {
    if let Some(written) = read_datagram(data) {
        // What follows a probe, or what is padded, does not count.
        let same = match *data {
            [0xf1, ..] => 5,
            [0xf4, high, low, ..] => 3 + usize::from(u16::from_be_bytes([high, low])),
            _ => data.len(),
        };
        assert_eq!((written.len(), &written[..same]), (data.len(), &data[..same]));
    }
    let Some((&[number, room, order, noise], frame)) = data.split_first_chunk() else { return };
    let number = u32::from(number);
    let Some(mut parts) = cut(number, frame, usize::from(room)) else { return };
    assert!(parts.iter().all(|part| part.len() <= usize::from(room)));
    if parts.is_empty() {
        return assert!(frame.is_empty());
    }
    let mut whole = Whole::default();
    // Parts of frames with other numbers, lost ones and repeated ones.
    for other in 0..u32::from(noise & 7) {
        if let Some(part) =
            cut(number + 1 + other, frame, usize::from(room)).and_then(|p| p.into_iter().next())
        {
            let complete = whole.push(&part);
            assert_eq!(complete.is_some(), parts.len() == 1);
        }
    }
    let first = usize::from(order) % parts.len();
    parts.rotate_left(first);
    let last = parts.pop().expect("at least one");
    for part in parts.iter().chain(parts.first()) {
        assert_eq!(whole.push(part), None);
    }
    assert_eq!(whole.push(&last).as_deref(), Some(frame));
    whole.push(data);
}

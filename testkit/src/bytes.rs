//! Bytes across a TCP connection, each of them checked. They are here since a crate is optimised,
//! and its tests are not.

use crate::{PATIENCE, Result};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const BLOCK: usize = 65_536;

/// The byte at this offset: neighbours differ, and so do packets and transfers.
fn byte(number: u64, offset: u64) -> u8 {
    let mixed = (offset ^ number << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// Neither reading nor writing waits for ever.
///
/// # Errors
/// The socket takes no timeout.
pub fn patient(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// How much is sent.
#[derive(Clone, Copy, Debug)]
pub enum Amount<'a> {
    /// So many bytes.
    Bytes(u64),
    /// Until somebody raises this flag, however long that takes.
    Until(&'a AtomicBool),
}

impl Amount<'_> {
    /// The end of the next block.
    fn next(self, offset: u64) -> Option<u64> {
        let next = offset + BLOCK as u64;
        match self {
            Self::Bytes(all) => (offset < all).then_some(all.min(next)),
            Self::Until(flag) => (!flag.load(Ordering::Relaxed)).then_some(next),
        }
    }
}

/// Sends the bytes of transfer `number`, and waits until the other end closes. How many there were.
///
/// # Errors
/// The connection breaks, or the receiver answers.
pub fn send(mut stream: TcpStream, number: u64, amount: Amount<'_>) -> Result<u64> {
    let mut offset = 0;
    while let Some(end) = amount.next(offset) {
        let block: Vec<u8> = (offset..end).map(|at| byte(number, at)).collect();
        stream.write_all(&block)?;
        offset = end;
    }
    stream.shutdown(Shutdown::Write)?;
    match stream.read(&mut [0])? {
        0 => Ok(offset),
        _ => Err("the receiver has nothing to say".into()),
    }
}

/// Receives them to the end, and adds to `received` how many have come. How many there were.
///
/// # Errors
/// The connection breaks, or a byte is wrong.
pub fn receive(mut stream: TcpStream, number: u64, received: &AtomicU64) -> Result<u64> {
    let mut block = vec![0; BLOCK];
    let mut offset = 0;
    loop {
        let length = stream.read(&mut block)?;
        if length == 0 {
            return Ok(offset);
        }
        for (value, at) in block.iter().take(length).zip(offset..) {
            if *value != byte(number, at) {
                return Err(format!("the byte at offset {at} is wrong").into());
            }
        }
        offset += length as u64;
        received.fetch_add(length as u64, Ordering::Relaxed);
    }
}

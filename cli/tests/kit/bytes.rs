//! Bytes across a TCP connection, each of them checked.

use super::{PATIENCE, Result};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCK: usize = 65_536;

/// The byte at this offset: neighbours differ, and so do packets and transfers.
fn byte(number: u64, offset: u64) -> u8 {
    let mixed = (offset ^ number << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

/// Neither reading nor writing waits for ever.
pub(crate) fn patient(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// Sends the bytes of transfer `number`, and waits until the other end closes.
pub(crate) fn send(mut stream: TcpStream, number: u64, bytes: u64) -> Result {
    let mut offset = 0;
    while offset < bytes {
        let end = bytes.min(offset + BLOCK as u64);
        let block: Vec<u8> = (offset..end).map(|at| byte(number, at)).collect();
        stream.write_all(&block)?;
        offset = end;
    }
    stream.shutdown(Shutdown::Write)?;
    match stream.read(&mut [0])? {
        0 => Ok(()),
        _ => Err("the receiver has nothing to say".into()),
    }
}

/// Receives them to the end, and adds to `received` how many have come.
pub(crate) fn receive(
    mut stream: TcpStream,
    number: u64,
    bytes: u64,
    received: &AtomicU64,
) -> Result {
    let mut block = vec![0; BLOCK];
    let mut offset = 0;
    loop {
        let length = stream.read(&mut block)?;
        if length == 0 {
            break;
        }
        for (value, at) in block.iter().take(length).zip(offset..) {
            if *value != byte(number, at) {
                return Err(format!("the byte at offset {at} is wrong").into());
            }
        }
        offset += length as u64;
        received.fetch_add(length as u64, Ordering::Relaxed);
    }
    if offset == bytes { Ok(()) } else { Err(format!("{offset} of {bytes} bytes").into()) }
}

//! The TCP of lwIP as the sender of a transfer: tools/stacks-bench runs it beside the kernel's.
//!
//! ```text
//! lwip-sender INTERFACE ADDRESS PORT SECONDS CONGESTION-CONTROL
//! ```
//!
//! It opens the TUN device INTERFACE, answers at every address and port, as this lwIP does, and
//! sends to whoever connects. It has one congestion control, Reno's.

use futures::{SinkExt, StreamExt};
use std::error::Error;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [interface, _, _, seconds, _] = &words[..] else {
        return Err("usage: INTERFACE ADDRESS PORT SECONDS CONGESTION-CONTROL".into());
    };
    let time = Duration::from_secs(seconds.parse()?);
    let mut configuration = tun::Configuration::default();
    configuration.tun_name(interface);
    let (mut to_device, mut from_device) =
        tun::create_as_async(&configuration)?.into_framed().split();
    let (stack, mut listener, _) = lwip::NetStack::new()?;
    let (mut to_stack, mut from_stack) = stack.split();
    tokio::spawn(async move {
        while let Some(Ok(packet)) = from_stack.next().await {
            to_device.send(packet).await.ok();
        }
    });
    tokio::spawn(async move {
        while let Some(Ok(packet)) = from_device.next().await {
            to_stack.send(packet).await.ok();
        }
    });
    let (mut connection, ..) = listener.next().await.ok_or("the stack has ended")?;
    let (block, end) = (vec![0; 1 << 14], Instant::now() + time);
    while Instant::now() < end {
        connection.write_all(&block).await?;
    }
    connection.shutdown().await?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    Ok(())
}

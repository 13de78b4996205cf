//! The queues that operators have at the air interface, each with the gateway on it, and losses
//! behind it: a table. Kernels for routers and clouds often lack most of them.

use crate::daemon::airmend;
use crate::world::Result;
use serde_json::Value;

/// With it, losses of 0, 1 and 10 % as well, and BBR with every queue.
const WHOLE: &str = "AIRMEND_WHOLE_TABLE";
const QUEUES: [&str; 7] = ["fast-band", "fifo", "prio", "tbf", "netem", "fq_codel", "cake"];
/// What the path of the laboratory is like, and how long a run takes.
const PATH: [&str; 10] = [
    "--rate",
    "10mbit",
    "--air-delay",
    "2ms",
    "--wired-delay",
    "25ms",
    "--seconds",
    "6",
    "--warmup",
    "2",
];
/// Of 9.5 Mb/s, the payload of 10 Mb/s; plain TCP has 0.7 to 1.0.
const LEAST_MENDED_BPS: f64 = 9.0e6;
const MOST_PLAIN_BPS: f64 = 2.0e6;

/// Every queue with two senders: what plain forwarding carries, and what the gateway makes of it.
pub(crate) fn queues() -> Result {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let is_whole = std::env::var_os(WHOLE).is_some();
    let losses: &[&str] = if is_whole { &["0", "0.01", "0.05", "0.1"] } else { &["0.05"] };
    println!("\nkernel, queue, sender, loss: plain, mended (Mb/s), wire bytes per byte of each");
    let queues = QUEUES.iter().flat_map(|queue| [(queue, "cubic"), (queue, "bbr")]);
    for (queue, sender) in queues {
        // BBR's timers make a run four times as long.
        if sender == "bbr" && !is_whole && !["fast-band", "fifo"].contains(queue) {
            continue;
        }
        for loss in losses {
            let plain = run("plain", queue, sender, loss)?;
            let mended = run("snoop", queue, sender, loss)?;
            println!(
                "{} {queue} {sender} {loss}: {:.2} {:.2}, {:.3} {:.3}",
                kernel.trim(),
                plain.goodput_bps / 1e6,
                mended.goodput_bps / 1e6,
                plain.wire_bytes_per_byte,
                mended.wire_bytes_per_byte,
            );
            if (*queue, sender, *loss) == ("fast-band", "cubic", "0.05") {
                assert!(mended.goodput_bps >= LEAST_MENDED_BPS, "{}", mended.goodput_bps);
                assert!(plain.goodput_bps <= MOST_PLAIN_BPS, "{}", plain.goodput_bps);
            }
        }
    }
    Ok(())
}

struct Measured {
    goodput_bps: f64,
    wire_bytes_per_byte: f64,
}

fn run(agent: &str, queue: &str, sender: &str, loss: &str) -> Result<Measured> {
    let mut airmend = airmend();
    airmend.args(["lab", "run", "--json", "--path", "gateway", "--agent", agent]);
    airmend.args(["--air-queue", queue, "--cc", sender, "--loss", loss]).args(PATH);
    let output = airmend.output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{agent}, {queue}, {sender}, {loss}: {complaint}");
    let row: Value = serde_json::from_slice(&output.stdout)?;
    let figure = |name: &str| row[name].as_f64().ok_or(format!("no {name} in {row}"));
    Ok(Measured {
        goodput_bps: figure("goodput_bps")?,
        wire_bytes_per_byte: figure("wire_bytes_per_byte")?,
    })
}

//! The queues that operators have at the air interface, each with the gateway on it, and losses
//! behind it: a table. Kernels for routers and clouds often lack most of them.

use crate::kit::{Result, airmend};
use serde_json::Value;
use std::fs;

/// With it, losses of 0, 1 and 10 % as well, and BBR, whose timers make a run four times as long.
const WHOLE: &str = "AIRMEND_WHOLE_TABLE";
const QUEUES: [&str; 8] =
    ["fast-band", "fifo", "prio", "tbf", "netem", "codel", "fq_codel", "cake"];
/// What the path of the laboratory is like.
const PATH: [&str; 6] = ["--rate", "10mbit", "--air-delay", "2ms", "--wired-delay", "25ms"];
/// 95 % of what 10 Mb/s carry of payload at a loss of 5 %, where one byte of payload makes 1.095 on
/// the air; plain TCP has 0.7 to 1.0 Mb/s.
const LEAST_MENDED_BPS: f64 = 0.95 * 10.0e6 / 1.095;
const MOST_PLAIN_BPS: f64 = 2.0e6;
/// Headers and a loss of 5 % make 1.105 bytes on the air of each byte of payload; repairs whose
/// round trip began when they entered the queue made 1.3 to 1.4.
const MOST_WIRE_BYTES: f64 = 1.2;

/// With a queue that lets repairs go first, CUBIC is mended as well as TCP's headers and the losses
/// allow.
///
/// A run varies with what the sender still saw, and so one of three is enough.
pub(crate) fn fast_band() -> Result {
    let mut mended = Vec::new();
    while mended.len() < 3 {
        let [plain, with_gateway] = row("fast-band", "cubic", "0.05", ["12", "2"])?;
        assert!(plain.goodput_bps <= MOST_PLAIN_BPS, "{}", plain.goodput_bps);
        mended.push(with_gateway.goodput_bps);
        if with_gateway.goodput_bps >= LEAST_MENDED_BPS {
            return Ok(());
        }
    }
    Err(format!("none of three is above {LEAST_MENDED_BPS} bit/s: {mended:?}").into())
}

/// A repair that waits behind 140 packets of data is not repeated: its round trip begins when it
/// leaves the queue. The median of three runs, as above.
pub(crate) fn repairs_wait() -> Result {
    let flags = ["--agent", "snoop", "--air-queue", "fifo", "--queue", "140", "--cc", "cubic"];
    let loss_and_time = ["--loss", "0.05", "--seconds", "8", "--warmup", "2"];
    let mut wire_bytes = Vec::new();
    for _ in 0..3 {
        let row = line(&[&flags[..], &loss_and_time].concat())?;
        let figure = &row["wire_bytes_per_byte"];
        wire_bytes.push(figure.as_f64().ok_or(format!("no wire_bytes_per_byte in {row}"))?);
    }
    println!("{wire_bytes:?} bytes on the air per byte");
    wire_bytes.sort_by(f64::total_cmp);
    assert!(wire_bytes[1] <= MOST_WIRE_BYTES, "{wire_bytes:?}");
    Ok(())
}

/// Every queue: the gateway mends what is lost behind it; and in the whole table how well, beside
/// plain forwarding.
pub(crate) fn queues() -> Result {
    if std::env::var_os(WHOLE).is_none() {
        for queue in QUEUES {
            let bps = run("snoop", queue, "cubic", "0.05", ["4", "1"])?.goodput_bps;
            println!("{queue}: {:.2} Mb/s", bps / 1e6);
            assert!(bps > MOST_PLAIN_BPS, "{queue}: {bps} bit/s is hardly more than without it");
        }
        return Ok(());
    }
    for queue in QUEUES {
        for sender in ["cubic", "bbr"] {
            for loss in ["0", "0.01", "0.05", "0.1"] {
                row(queue, sender, loss, ["8", "2"])?;
            }
        }
    }
    Ok(())
}

/// Every queue of a modem: it drops what CUBIC sends too much, and the gateway's own queue nothing.
pub(crate) fn far_queues() -> Result {
    for queue in ["40", "codel", "fq_codel"] {
        let flags = ["--far-queue", queue, "--loss", "0", "--seconds", "4"];
        let row = line(&[&["--agent", "plain", "--cc", "cubic"][..], &flags].concat())?;
        let dropped = |link: &str| row["links"][link]["dropped"].as_u64();
        assert!(dropped("air_down") > Some(0), "{queue}: {row}");
        assert_eq!(dropped("modem_down"), Some(0), "{queue}: {row}");
    }
    Ok(())
}

/// Measures a row of the table, for so many seconds of which the first are the warm-up, and prints
/// it: plain, and mended.
fn row(queue: &str, sender: &str, loss: &str, seconds: [&str; 2]) -> Result<[Measured; 2]> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let plain = run("plain", queue, sender, loss, seconds)?;
    let mended = run("snoop", queue, sender, loss, seconds)?;
    println!(
        "Linux {}, {queue}, {sender}, loss {loss}: plain {:.2} Mb/s, mended {:.2} Mb/s; on the air \
         {:.3} and {:.3} bytes per byte",
        kernel.trim(),
        plain.goodput_bps / 1e6,
        mended.goodput_bps / 1e6,
        plain.wire_bytes_per_byte,
        mended.wire_bytes_per_byte,
    );
    Ok([plain, mended])
}

struct Measured {
    goodput_bps: f64,
    wire_bytes_per_byte: f64,
}

fn run(
    agent: &str,
    queue: &str,
    sender: &str,
    loss: &str,
    [seconds, warmup]: [&str; 2],
) -> Result<Measured> {
    let what = ["--agent", agent, "--air-queue", queue, "--cc", sender, "--loss", loss];
    let row = line(&[&what[..], &["--seconds", seconds, "--warmup", warmup]].concat())?;
    let figure = |name: &str| row[name].as_f64().ok_or(format!("no {name} in {row}"));
    Ok(Measured {
        goodput_bps: figure("goodput_bps")?,
        wire_bytes_per_byte: figure("wire_bytes_per_byte")?,
    })
}

/// The JSON line of a run beside the gateway.
fn line(flags: &[&str]) -> Result<Value> {
    let mut airmend = airmend();
    airmend.args(["lab", "run", "--json", "--path", "gateway"]).args(PATH).args(flags);
    let output = airmend.output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{flags:?}: {complaint}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

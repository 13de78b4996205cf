//! The hop as a trace, in a file that grows while the gateway observes.
//!
//! A thread of its own writes the file, a row at a time: the loop that keeps time never waits for a
//! disk, and what has been written is there whatever becomes of the gateway.

use airmend_proto::link::trace::{self, MAX_ROWS, Row};
use airmend_proto::observer::HopRecorder;
use airmend_proto::{Instant, Packet, Port};
use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Rows that wait at most to be written; there is one a second.
const BACKLOG: usize = 1 << 10;

/// Records the hop into a file.
#[derive(Debug)]
pub(super) struct HopTrace {
    recorder: HopRecorder,
    rows: SyncSender<Row>,
    writer: JoinHandle<io::Result<()>>,
    written: usize,
}

impl HopTrace {
    /// Writes to `file`, in a thread that may do what the calling one may. The rate of the air may
    /// be known.
    pub(super) fn start(file: File, now: Instant, rate_bps: Option<u64>) -> io::Result<Self> {
        let (rows, queue) = sync_channel(BACKLOG);
        let writer = std::thread::Builder::new()
            .name("trace".to_owned())
            .spawn(move || write_all(file, &queue))?;
        let mut recorder = HopRecorder::new(now);
        recorder.know(rate_bps);
        Ok(Self { recorder, rows, writer, written: 0 })
    }

    /// Sets the rate of the air.
    pub(super) fn know(&mut self, rate_bps: Option<u64>) {
        self.recorder.know(rate_bps);
    }

    /// A packet crossed the interface, coming from this side.
    pub(super) fn packet(&mut self, now: Instant, from: Port, packet: &Packet) {
        self.turn(now);
        self.recorder.packet(now, from, packet, None);
    }

    /// Writes the rows of intervals that are over.
    pub(super) fn turn(&mut self, now: Instant) {
        while let Some(row) = self.recorder.poll_row(now) {
            // One more is its end.
            if self.written + 1 < MAX_ROWS && self.rows.try_send(row).is_ok() {
                self.written += 1;
            }
        }
    }

    /// Writes the end of the trace.
    pub(super) fn finish(mut self, now: Instant) -> io::Result<()> {
        if let Some(row) = self.recorder.finish(now).filter(|_| self.written > 0) {
            // Nobody waits any more.
            self.rows.send(row).ok();
        }
        drop(self.rows);
        self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn write_all(mut file: File, rows: &Receiver<Row>) -> io::Result<()> {
    writeln!(file, "{}", trace::header())?;
    for row in rows {
        // In one piece, so that no half of a row is ever there.
        file.write_all(format!("{}\n", trace::row(&row)).as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output_file;
    use airmend_proto::link::trace::parse_trace;
    use std::fs;
    use std::time::Duration;

    #[test]
    fn rows_are_written_until_the_end() {
        let path = std::env::temp_dir().join(format!("airmend-hop-{}", std::process::id()));
        let file = output_file::create(&path).unwrap();
        let trace = HopTrace::start(file, Instant::ZERO, None).unwrap();
        let row = |seconds| Row {
            at: Duration::from_secs(seconds),
            rate_bps: 1_000_000,
            ..Row::default()
        };
        [row(0), row(3)].into_iter().for_each(|row| trace.rows.send(row).unwrap());
        trace.finish(Instant::from_millis(3_000)).unwrap();
        let read = parse_trace(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(read.period(), Some(Duration::from_secs(3)));
        fs::remove_file(&path).unwrap();
    }
}

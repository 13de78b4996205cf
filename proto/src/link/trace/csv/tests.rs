use super::*;
use crate::time::Instant;
use alloc::string::ToString;
use proptest::prelude::*;

#[test]
fn columns_may_be_left_out_and_stand_in_any_order() {
    let text = "loss, time_s ,rate_bps\r\n0.5,10,1e6\r\n\n0,10.5,2000000\r\n1,12,7\r\n";
    let trace = parse_trace(text).unwrap();
    assert_eq!(trace.columns(), Columns { rate: true, delay: false, loss: true });
    assert_eq!(trace.period(), Some(Duration::from_secs(2)));
    let row = trace.at(Instant::from_millis(499));
    assert_eq!((row.rate_bps, row.loss), (1_000_000, 0.5));
    assert_eq!(trace.at(Instant::from_millis(500)).rate_bps, 2_000_000);
}

/// As Pensieve's cooked traces are: tabs or spaces, no header.
#[test]
fn seconds_and_megabits_need_no_header() {
    let text = "\u{feff}3.0\t1.5\r\n\n 3.5   0.25 \r\n5 7\r\n";
    let trace = parse_trace(text).unwrap();
    assert_eq!(trace.columns(), Columns { rate: true, ..Columns::default() });
    assert_eq!(trace.period(), Some(Duration::from_secs(2)));
    assert_eq!(trace.at(Instant::from_millis(499)).rate_bps, 1_500_000);
    assert_eq!(trace.at(Instant::from_millis(500)).rate_bps, 250_000);
}

/// Each in one sentence that says where.
#[test]
fn what_is_no_trace_is_refused() {
    let refused = |text: &str| parse_trace(text).unwrap_err().to_string();
    for (text, sentence) in [
        ("", "the file is empty; it begins with time_s,rate_bps,delay_ms,loss"),
        ("\n \n", "the file is empty; it begins with time_s,rate_bps,delay_ms,loss"),
        ("time_s,loss\n", "there is no row below the header"),
        (
            "time_s,rate\n0,1\n",
            "line 1: unknown column \"rate\"; the columns are time_s, rate_bps, delay_ms, loss",
        ),
        (
            "0,1000000\n",
            "line 1: the header is missing: the columns are time_s, rate_bps, delay_ms, loss; \
             without one, a line is `seconds Mbit/s`",
        ),
        ("rate_bps\n1\n", "line 1: the column time_s is missing"),
        ("time_s\n1\n", "line 1: there is no column but time_s: add rate_bps, delay_ms or loss"),
        ("time_s,loss,loss\n0,0,0\n", "line 1: the column loss is there twice"),
        ("time_s,loss\n0,0\n2,0\n1,0\n", "line 4: the times must ascend, and 1 s does not"),
        ("time_s,loss\n5,0\n2,0\n", "line 3: the times must ascend, and 2 s does not"),
        ("time_s,loss\n0,0\n0,0\n", "line 3: the times must ascend, and 0 s does not"),
        ("time_s,loss\n0,NaN\n", "line 2: loss must be a number, not \"NaN\""),
        ("time_s,rate_bps\n0,inf\n", "line 2: rate_bps must be a number, not \"inf\""),
        ("time_s,loss\n0,\n", "line 2: loss must be a number, not \"\""),
        ("time_s,loss\n0,1.01\n", "line 2: loss must lie between 0 and 1, and 1.01 does not"),
        ("time_s,loss\n0,-0.1\n", "line 2: loss must lie between 0 and 1, and -0.1 does not"),
        (
            "time_s,rate_bps\n0,-5\n",
            "line 2: rate_bps must lie between 0 and 1000000000000 bit/s, and -5 does not",
        ),
        (
            "time_s,delay_ms\n0,1e9\n",
            "line 2: delay_ms must lie between 0 and 60000 ms, and 1e9 does not",
        ),
        ("time_s,loss\n0\n", "line 2: it has 1 cells and the header has 2"),
        ("0 1.5\n1\n", "line 2: it has 1 words; without a header a line is `seconds Mbit/s`"),
        ("0 1.5\n1 x\n", "line 2: rate_bps must be a number, not \"x\""),
        (
            "0 1.5\n1 2e6\n",
            "line 2: rate_bps must lie between 0 and 1000000 Mbit/s, and 2e6 does not",
        ),
        ("time_s,loss\n0,0,0\n", "line 2: it has 3 cells and the header has 2"),
    ] {
        assert_eq!(refused(text), sentence, "{text:?}");
    }
    for zero in ["time_s,rate_bps\n0,0\n", "time_s,rate_bps\n0,0\n5,0.4\n9,1e6\n"] {
        assert!(refused(zero).starts_with("rate_bps is 0 for ever"), "{zero:?}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_trace_or_gets_one_sentence(text in "(?s).{0,80}") {
        if let Err(error) = parse_trace(&text) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }

    /// Cells that are nearly right find more than any text does.
    #[test]
    fn nearly_right_cells_are_read_or_refused(
        cells in prop::collection::vec(("[-+0-9.eNna]{0,6}", "[-0-9.e]{1,5}"), 0..9)
    ) {
        let mut text = String::from("time_s,loss\n");
        for (time, loss) in cells {
            text += &format!("{time},{loss}\n");
        }
        match parse_trace(&text) {
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
            Ok(trace) => {
                let row = trace.at(Instant::from_millis(700));
                prop_assert!((0.0..=1.0).contains(&row.loss));
            }
        }
    }

    #[test]
    fn what_is_written_is_read_back(
        rows in prop::collection::vec(
            (1u64..5_000, 1u64..1 << 39, 0u64..60_000_000, 0u32..=100_000), 1..9
        )
    ) {
        let mut at = Duration::ZERO;
        let rows: Vec<Row> = rows.into_iter().map(|(step, rate_bps, delay, loss)| {
            let row = Row {
                at,
                rate_bps,
                delay: Duration::from_micros(delay),
                loss: f64::from(loss) / 1e5,
            };
            at += Duration::from_millis(step);
            row
        }).collect();
        let mut text = header();
        for written in &rows {
            text += "\n";
            text += &row(written);
        }
        let columns = Columns { rate: true, delay: true, loss: true };
        prop_assert_eq!(parse_trace(&text), Ok(Trace::new(columns, &rows)));
    }
}

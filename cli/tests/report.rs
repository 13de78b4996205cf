//! Reports of small result files, through the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The whole page of a small experiment. Look at a new page before it replaces the golden one.
#[test]
fn a_report_is_the_golden_one_to_the_byte() {
    let out = Directory::new("golden");
    let results = golden().join("results");
    let page = page(&results, &out.0);
    let expected = fs::read_to_string(golden().join("index.html")).expect("golden page");
    let differs = page.lines().zip(expected.lines()).position(|(new, old)| new != old);
    if page != expected {
        let kept = std::env::temp_dir().join("airmend-report-golden.html");
        fs::write(&kept, &page).expect("write");
        panic!("line {differs:?} differs from the golden page; the new one is {}", kept.display());
    }
    let picture = fs::read_to_string(out.0.join("snoop95-fig4.svg")).expect("picture");
    assert!(picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>"));
}

#[test]
fn a_report_says_what_was_found_and_what_the_paper_says() {
    let out = Directory::new("says");
    let page = page(&golden().join("results"), &out.0);
    for words in [
        "one error per N bits",
        "256 Kb",
        "<td>1/256Ki</td>",
        "0.280 ± 0.042",
        "2, 1 incomplete",
        "99.3 %",
        "paper: about 0.25",
        "1.52 Mb/s (1.52 of it)",
        "S0-64",
        "airmend sim run experiments/snoop95/fig4.toml",
    ] {
        assert!(page.contains(words), "no {words:?}");
    }
}

#[test]
fn a_page_needs_nothing_but_itself() {
    let out = Directory::new("itself");
    let page = page(&golden().join("results"), &out.0);
    for outside in ["http:", "https:", "//", "src=", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(outside), "{outside:?} on the page");
    }
}

#[test]
fn a_broken_line_is_named_and_nothing_else_is_lost() {
    let (results, out) = (Directory::new("broken"), Directory::new("broken-out"));
    let good = fs::read_to_string(golden().join("results/snoop95/fig4.jsonl")).expect("golden");
    let bad =
        "{\"agent\":\"plain\",\"goodput_bps\":-1}\n{\"weather\":\"fine\"}\nfree text\n{\"agent\":";
    fs::write(results.0.join("mine.jsonl"), format!("{good}{bad}")).expect("write");
    let output = report(&results.0, &out.0);
    assert!(output.status.success(), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = stderr.lines().collect();
    let expected = [
        "mine.jsonl:13: goodput_bps must be a number of at least 0; the line is left out",
        "mine.jsonl:14: this is neither a run nor a summary nor a packet: no goodput_bps; the \
         line is left out",
        "mine.jsonl:15: this is no JSON object (column 2); the line is left out",
        "mine.jsonl: 1 further line could not be read either",
    ];
    assert_eq!(lines.len(), expected.len(), "{stderr}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with("airmend: ") && line.ends_with(expected), "{line}");
    }
    let broken = fs::read_to_string(out.0.join("index.html")).expect("page");
    assert!(broken.contains("mine.jsonl:13: goodput_bps"), "the page tells it too");
    assert!(broken.contains("0.280 ± 0.042") && broken.contains("2, 1 incomplete"));
}

#[test]
fn a_line_that_was_cut_off_says_so() {
    let (results, out) = (Directory::new("cut"), Directory::new("cut-out"));
    let good = fs::read_to_string(golden().join("results/snoop95/fig4.jsonl")).expect("golden");
    fs::write(results.0.join("cut.jsonl"), &good[..good.len() - 30]).expect("write");
    let output = report(&results.0, &out.0);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("cut.jsonl:12: the line is cut off"), "{stderr}");
}

#[test]
fn without_results_one_sentence_says_how_to_make_some() {
    let (empty, out) = (Directory::new("empty"), Directory::new("empty-out"));
    for (directory, words) in [
        (empty.0.clone(), "holds no results (*.jsonl): make some with airmend sim run"),
        (empty.0.join("none"), "is no directory of results"),
    ] {
        let sentence = refused(&directory, &out.0, 2);
        assert!(sentence.contains(words), "{sentence}");
    }
    fs::write(empty.0.join("x.jsonl"), "\n{}\n{\"goodput_bps\":1e300}\n").expect("write");
    let sentences = refused(&empty.0, &out.0, 1);
    assert!(sentences.contains("x.jsonl:2: this is neither a run"), "{sentences}");
    assert!(sentences.contains("x.jsonl:3: goodput_bps must be 0 or a number"), "{sentences}");
    assert!(sentences.contains("holds no run and no summary that can be read"), "{sentences}");
    assert!(!out.0.join("index.html").exists());
}

#[test]
fn runs_of_the_laboratory_are_drawn_against_their_loss() {
    let (results, out) = (Directory::new("lab"), Directory::new("lab-out"));
    let mut lines = String::new();
    for (agent, loss, goodput) in
        [("plain", "0", 18), ("snoop95", "0", 18), ("plain", "0.05", 2), ("snoop95", "0.05", 16)]
    {
        lines += &format!(r#"{{"agent":"{agent}","world":"lab","cc":"cubic","direction":"down","#);
        lines += &format!(
            r#""rate_bps":20000000,"air_delay_ms":2,"wired_delay_ms":40,"ber":null,"loss":{loss},"#
        );
        lines += &format!(
            r#""bytes":10000000,"seed":7,"goodput_bps":{goodput}000000,"bound_bps":19000000,"#
        );
        lines += "\"burst\":null,\"settings\":{\"dupack_threshold\":\"3\"},\"sack\":false}\n";
    }
    fs::write(results.0.join("home <wifi>.jsonl"), lines).expect("write");
    let page = page(&results.0, &out.0);
    for words in [
        "home &lt;wifi&gt;",
        "loss on the air hop (%)",
        "<td>snoop95</td><td>5 %</td>",
        "airmend lab compare --agents plain,snoop95 --cc cubic --loss 0,0.05 --repeat 1",
        "--rate 20mbit --no-sack --set dupack_threshold=3 --wired-delay 40ms --seed 7 --json",
    ] {
        assert!(page.contains(words), "no {words:?}");
    }
    assert!(out.0.join("home--wifi-.svg").exists());
}

/// Lines of the laboratory from before agents had a place are of the base station.
#[test]
fn the_place_of_an_agent_tells_uploads_apart() {
    let (results, out) = (Directory::new("place"), Directory::new("place-out"));
    let line = |place: &str, goodput| {
        let setting = r#"{"agent":"snoop","world":"lab","cc":"cubic","direction":"up","seed":1"#;
        format!(r#"{setting},"loss":0.05,"goodput_bps":{goodput}{place}}}"#)
    };
    let mobile = r#","place":"mobile""#;
    let lines = [line("", 900_000), line(mobile, 17_000_000)].join("\n");
    fs::write(results.0.join("both.jsonl"), lines).expect("write");
    fs::write(results.0.join("one.jsonl"), line(mobile, 17_000_000)).expect("write");
    let page = page(&results.0, &out.0);
    for words in ["0.900", "17.00", "--direction up --place mobile"] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
}

/// Whatever numbers a file holds, there is a picture or a sentence.
#[test]
fn strange_numbers_do_no_harm() {
    for (name, field, values) in [
        ("zero", "ber", ["0", "0", "0"]),
        ("huge", "window_bytes", ["1", "1e15", "1e-15"]),
        ("negative", "level", ["-5", "0", "5"]),
        ("mixed", "thing", ["1", "\"two\"", "null"]),
        ("nested", "burst", ["{\"frames\":4}", "[1]", "true"]),
        ("same", "ber", ["1e-5", "1e-5", "1e-5"]),
    ] {
        let (results, out) = (Directory::new(name), Directory::new(&format!("{name}-out")));
        let lines: String = (0..)
            .zip(values)
            .map(|(n, value)| {
                let goodput = ["0", "1e15", "5"][n];
                format!("{{\"agent\":null,\"{field}\":{value},\"goodput_bps\":{goodput}}}\n")
            })
            .collect();
        fs::write(results.0.join("x.jsonl"), lines).expect("write");
        let page = page(&results.0, &out.0);
        assert!(page.contains("<svg ") && !page.contains("NaN"), "{name}");
    }
}

#[test]
fn a_trace_becomes_a_sequence_plot() {
    let (results, out) = (Directory::new("trace"), Directory::new("trace-out"));
    let (mut runs, mut trace) = (String::new(), String::new());
    for (agent, goodput) in [("plain", 250_000), ("snoop95", 1_500_000)] {
        let common = format!("{{\"experiment\":\"snoop95/fig5\",\"agent\":\"{agent}\",\"seed\":1");
        runs += &format!("{common},\"ber\":4e-6,\"goodput_bps\":{goodput}}}\n");
        for (n, kind) in (0..).zip(["data", "ack", "sender_retransmit", "local_retransmit"]) {
            let place = format!("\"seconds\":{n},\"offset\":{}", n * 100_000);
            trace += &format!("{common},{place},\"kind\":\"{kind}\"}}\n");
        }
    }
    trace += "{\"seconds\":1,\"offset\":2,\"kind\":\"rumour\"}\n";
    fs::write(results.0.join("fig5.jsonl"), runs).expect("write");
    fs::write(results.0.join("fig5.trace.jsonl"), trace).expect("write");
    let output = report(&results.0, &out.0);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("fig5.trace.jsonl:9: kind must be one of data,"), "{stderr}");
    let page = fs::read_to_string(out.0.join("index.html")).expect("page");
    for words in
        ["position in the stream (MB)", "resent by the sender", "paper, TCP: 0.25 Mb/s", "time (s)"]
    {
        assert!(page.contains(words), "no {words:?}");
    }
    assert!(page.contains("1.50 Mb/s (1.50 of it)"), "measured beside published");
    assert_eq!(page.matches("<svg ").count(), 1, "one picture");
}

fn report(results: &Path, out: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_airmend"))
        .arg("report")
        .args([results, Path::new("--out"), out])
        .output()
        .expect("airmend runs")
}

/// The page of results that can all be read.
fn page(results: &Path, out: &Path) -> String {
    let output = report(results, out);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let path = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    assert_eq!(Path::new(&path), out.join("index.html"));
    fs::read_to_string(path).expect("page")
}

/// What a report without results says; every line is a sentence of ours.
fn refused(results: &Path, out: &Path, status: i32) -> String {
    let output = report(results, out);
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.lines().all(|line| line.starts_with("airmend: ")), "{stderr}");
    stderr
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report")
}

/// A directory that is gone after its test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("airmend-report-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

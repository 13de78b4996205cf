//! What is wrong with a scenario is said in one sentence, with file and line.

use airmend_sim::Experiment;

const GOOD: &str = r#"title = "good"
time_limit = "1min"
[hosts]
fh = { profile = "bsd95" }
mh = { profile = "bsd95" }
[stations]
bs = { agent = "snoop95", settings.snoop95.dupack_threshold = 1 }
[links.wired]
between = ["fh", "bs"]
rate = "10mbit"
delay = "1ms"
[links.air]
between = ["bs", "mh"]
air = true
rate = "2mbit"
delay = "5ms"
errors = { loss = "1%" }
[flows.transfer]
from = "fh"
to = "mh"
bytes = "10kB"
"#;

fn error(text: &str, settings: &[(&str, &str)]) -> String {
    let settings: Vec<_> =
        settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    match Experiment::parse("x.toml".to_owned(), text.to_owned(), &settings) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

/// The file with one text in place of another, which it must hold.
fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    error(&GOOD.replacen(from, to, 1), &[])
}

#[test]
fn values_and_keys() {
    assert_eq!(error(GOOD, &[]), "no error");
    let unit = "must be a number with ns, us, ms, s, min or h, such as 40ms";
    assert_eq!(with("1ms", "1 parsec"), format!("x.toml:11: duration \"1 parsec\" {unit}"));
    assert_eq!(with("\"1ms\"", "1"), format!("x.toml:11: duration \"1\" {unit}"));
    assert_eq!(
        with("2mbit", "-2bit"),
        "x.toml:15: rate \"-2bit\" must be more than 0, such as 20mbit"
    );
    let unit = "must be a number with bit, kbit, mbit or gbit, such as 20mbit";
    for (number, read) in [("20", "20"), ("2e6", "2000000"), ("\"20\"", "20")] {
        assert_eq!(with("\"2mbit\"", number), format!("x.toml:15: rate \"{read}\" {unit}"));
    }
    assert_eq!(
        with("delay = \"5ms\"", "dealy = \"5ms\""),
        "x.toml:16: unknown key `dealy`; did you mean `delay`?"
    );
    assert_eq!(
        with("time_limit", "timelimit"),
        "x.toml:2: unknown key `timelimit`; did you mean `time_limit`?"
    );
    assert_eq!(with("rate = \"2mbit\"\n", ""), "x.toml:12: the key `rate` is missing");
    assert_eq!(with("loss", "los"), "x.toml:17: unknown key `los`; did you mean `loss`?");
    assert_eq!(
        with("loss = \"1%\"", "loss = 2"),
        "x.toml:17: probability \"2\" must lie between 0 and 1, such as 0.05 or 5%"
    );
    assert_eq!(
        with("loss = \"1%\"", "loss = 0.1, ber = 1e-6"),
        "x.toml:17: `errors` must be one of loss, ber, burst, fading, not several"
    );
    assert_eq!(
        with("air = true", "air = 1"),
        "x.toml:14: found integer `1` where a boolean belongs"
    );
    assert_eq!(with("10kB", "0"), "x.toml:21: `bytes` must be more than 0, such as \"10MB\"");
}

#[test]
fn queues() {
    let air = "delay = \"5ms\"\n";
    let queue = |more: &str| with(air, &format!("{air}{more}"));
    for fine in ["queue = \"20ms\"\n", "queue = 0\n", "down.discipline = \"fq_codel\"\n"] {
        assert_eq!(queue(fine), "no error");
    }
    let limit = "expected a number of frames, or a time such as \"20ms\", not 2 hogsheads";
    assert_eq!(queue("queue = \"2 hogsheads\"\n"), format!("x.toml:17: {limit}"));
    let known = "is no queue discipline; write fifo, codel, fq_codel or red";
    assert_eq!(queue("discipline = \"pie\"\n"), format!("x.toml:17: \"pie\" {known}"));
    assert_eq!(
        queue("discipline = \"red\"\narq = { retries = 3 }\n"),
        "x.toml:17: a link with `mac`, `wifi`, `arq` or `airmail` has a fifo, not `red`"
    );
}

#[test]
fn airmail() {
    let air = "errors = { loss = \"1%\" }\n";
    let airmail = |more: &str| with(air, &format!("errors = {{ ber = 1e-6 }}\n{more}"));
    assert_eq!(airmail("airmail = {}\n"), "no error");
    assert_eq!(airmail("airmail = { window = 64, status = \"5ms\", fec = false }\n"), "no error");
    let limits = "x.toml:18: an `airmail` has a `window` from 1 to 64, and a `status` of more than \
                  0 and at most 10s";
    assert_eq!(airmail("airmail = { window = 65 }\n"), limits);
    assert_eq!(airmail("airmail = { status = \"0s\" }\n"), limits);
    let alone = "x.toml:18: a link with `airmail` joins one pair of nodes, without `shared`, \
                 `channel`, `arq`, `mac`, `wifi` and `generator`";
    assert_eq!(airmail("airmail = {}\narq = { retries = 3 }\n"), alone);
    assert_eq!(airmail("airmail = {}\nshared = true\n"), alone);
    assert_eq!(
        with(air, &format!("{air}airmail = {{}}\n")),
        "x.toml:18: the code of `airmail` corrects bits: `errors` must be `ber`"
    );
    assert_eq!(
        airmail("airmail = { windows = 8 }\n"),
        "x.toml:18: unknown key `windows`; did you mean `window`?"
    );
}

#[test]
fn split_connections() {
    let agent = "agent = \"snoop95\", settings.snoop95.dupack_threshold = 1";
    let split = |more: &str| with(agent, &format!("agent = \"m-tcp\"{more}"));
    assert_eq!(split(""), "no error");
    let bbr = ", air = { profile = \"linux\", congestion = \"bbr\" }, silence = \"1s\"";
    assert_eq!(split(bbr), "no error");
    assert_eq!(
        split(", silence = \"0s\""),
        "x.toml:7: `silence` must be more than 0, such as \"200ms\""
    );
    assert_eq!(
        split(", air = { profile = \"bsd95\", congestion = \"bbr\" }"),
        "x.toml:7: `congestion = \"bbr\"` needs `sack` and `sack_recovery = \"linux\"`"
    );
    assert!(split(", wired = { congestion = \"reno\" }").contains("needs a `profile`"));
}

#[test]
fn radios() {
    let air = "delay = \"5ms\"\n";
    let mac = "mac = { preamble = \"192us\", header_bytes = 34, rts_bytes = 20, \
               turnaround = \"1ms\", backoff_rts = 10 }\n";
    let radio = |more: &str| with(air, &format!("{air}{mac}{more}"));
    assert_eq!(radio("up.errors = { ber = 1e-6 }\n"), "no error");
    let channel = "x.toml:12: link `air` has a `mac`: its directions share a channel and may \
                   differ in `errors` only, without `arq`";
    assert_eq!(radio("up.rate = \"1mbit\"\n"), channel);
    assert_eq!(radio("arq = { retries = 3 }\n"), channel);
    let most = "times of a `mac` and the link's delay are at most 1s, its other numbers at most \
                10000";
    let long = mac.replace("1ms", "2s");
    assert_eq!(with(air, &format!("{air}{long}")), format!("x.toml:17: {most}"));
    let stations = "[stations]\nbs = { count = 2, ";
    let shared = GOOD.replace("[stations]\nbs = { ", stations);
    let shared = shared.replace(air, &format!("{air}{mac}shared = true\n"));
    assert_eq!(error(&shared.replace("\"bs\"]\n", "\"bs\"]\nshared = true\n"), &[]), "no error");
}

#[test]
fn stations_of_802_11() {
    let air = "delay = \"5ms\"\n";
    let wifi = |rate: &str, table: &str| {
        let text = GOOD.replace(air, "delay = \"1us\"\nair = true\n");
        let text = text.replacen("air = true\n", "", 1);
        let link = text.find("[links.air]").unwrap();
        let (before, after) = text.split_at(link);
        let after = after.replacen("rate = \"2mbit\"", &format!("rate = \"{rate}\""), 1);
        error(&format!("{before}{}", after.replacen("air = true\n", table, 1)), &[])
    };
    let table = |more: &str| format!("air = true\nwifi = {{ {more} }}\n");
    assert_eq!(wifi("2mbit", &table("phy = \"fhss\", retries = 0")), "no error");
    assert_eq!(wifi("65mbit", &table("phy = \"ht\", aggregate = 64, buffer = 32000")), "no error");
    let says = |found: String, words: &str| assert!(found.contains(words), "{found}");
    says(wifi("2mbit", &table("phy = \"ofmd\"")), "unknown phy `ofmd`; did you mean `ofdm`?");
    says(wifi("2mbit", &table("phy = \"dsss\", aggregate = 2")), "from 1 to 1 frames");
    says(wifi("3mbit", &table("phy = \"dsss\"")), "the rates of `dsss` are 1mbit, 2mbit, 5.5mbit");
    says(wifi("2mbit", &table("phy = \"dsss\", retries = 256")), "at most 255 `retries`");
    let up = table("phy = \"dsss\"") + "up.rate = \"1mbit\"\n";
    says(wifi("2mbit", &up), "has a `wifi`: its directions share a channel");
    says(with(air, &format!("{air}wifi = {{ phy = \"ht\" }}\n")), "less than the SIFS of its phy");
}

#[test]
fn datagrams_and_measures() {
    let packets = |fields: &str| with("bytes = \"10kB\"", &format!("packets = {{ {fields} }}"));
    assert_eq!(packets("size = \"1kB\", rate = \"saturating\""), "no error");
    assert_eq!(packets("size = 8, rate = \"1mbit\""), "no error");
    for (fields, says) in [
        ("size = 7, rate = \"1mbit\"", "`size` of a datagram must be 8 to 65507 bytes"),
        ("size = \"1MB\", rate = \"1mbit\"", "`size` of a datagram must be 8 to 65507 bytes"),
        ("size = 9, rate = \"fast\"", "expected a rate such as \"20mbit\", or \"saturating\""),
        ("size = 9, rate = \"1mbit\", count = 2", "they are sent until the run ends"),
        ("size = 9", "needs one of `interval` (packets over TCP) and `rate` (datagrams)"),
    ] {
        let error = packets(fields);
        assert!(error.contains(says), "{fields}: {error}");
    }
    let closed = "packets = { size = 9, rate = \"1mbit\" }\nuntil_closed = true";
    let error = with("bytes = \"10kB\"", closed);
    assert!(error.contains("datagrams have no connection"), "{error}");
    let measure = |name: &str| {
        with("time_limit = \"1min\"", &format!("time_limit = \"1min\"\nmeasure = [{name:?}]"))
    };
    assert_eq!(measure("air_up.collided"), "no error");
    assert_eq!(measure("negative_acks"), "no error");
    assert_eq!(
        measure("retransmit"),
        "x.toml:3: unknown measure `retransmit`; the nearest are `retransmits`, \
         `local_retransmits`, `sender_retransmits`"
    );
}

#[test]
fn generators_and_messages() {
    let air = "delay = \"5ms\"\n";
    let generator = |table: &str| with(air, &format!("{air}generator = {{ {table} }}\n"));
    assert_eq!(generator("at = \"bs\", rate = 0.3, receive = \"5%\""), "no error");
    assert_eq!(
        generator("at = \"fh\", rate = 0.3"),
        "x.toml:17: link `air` ends at `bs` and `mh`, not at `fh`"
    );
    let says = |found: String, words: &str| assert!(found.contains(words), "{found}");
    says(generator("at = \"bs\", send = 1.5"), "x.toml:17: ");
    let flow = |more: &str| with("to = \"mh\"\n", &format!("to = \"mh\"\n{more}\n"));
    says(flow("message = 1000\nserial = true\nuntil_closed = true"), "no error");
    says(flow("message = 0"), "`message` must be more than 0 bytes");
    says(flow("serial = true"), "flow `transfer` is `serial`, and needs `message`");
    let packets = "packets = { size = 1, interval = \"1s\" }\nmessage = 1000";
    says(with("bytes = \"10kB\"", packets), "`message` needs `bytes`");
}

#[test]
fn names() {
    assert_eq!(
        with("\"bsd95\"", "\"bsd59\""),
        "x.toml:4: unknown profile `bsd59`; did you mean `bsd95`?"
    );
    assert_eq!(
        with("profile = \"bsd95\"", "profile = \"bsd95\", rtomin = \"1s\""),
        "x.toml:4: unknown key `rtomin`; did you mean `rto_min`?"
    );
    assert_eq!(
        with("\"snoop95\"", "\"snoop59\""),
        "x.toml:7: unknown agent `snoop59`; did you mean `snoop95`?"
    );
    assert_eq!(
        with("dupack_threshold = 1", "dupack_threshold = 0"),
        "x.toml:7: dupack_threshold \"0\" must be a whole number from 1 to 1000000"
    );
    assert_eq!(
        with("[\"bs\", \"mh\"]", "[\"bs\", \"mobile\"]"),
        "x.toml:13: unknown host or station `mobile`; known are fh, mh, bs"
    );
    assert_eq!(
        with("to = \"mh\"", "to = \"bs\""),
        "x.toml:20: `bs` is a station; flows are between hosts"
    );
}

#[test]
fn topologies() {
    let third = "[links.third]\nbetween = [\"fh\", \"mh\"]\nrate = \"1mbit\"\ndelay = \"1ms\"\n";
    assert_eq!(error(&format!("{GOOD}{third}"), &[]), "no error");
    assert_eq!(
        with("air = true\n", ""),
        "x.toml:7: station `bs` needs a wired link and an air link (`air = true`) for its agent \
         `snoop95`; it has 2 and 0"
    );
    let two = third.replace("fh", "bs") + "air = true\n";
    assert_eq!(
        error(&format!("{GOOD}{two}").replace("snoop95\"", "tulip\""), &[]),
        "x.toml:7: station `bs` needs one air link for its agent `tulip`; it has 1 and 2"
    );
    assert_eq!(
        with("from = \"fh\"", "from = \"mh\""),
        "x.toml:18: flow `transfer`: it leads from `mh` to itself"
    );
    assert_eq!(
        with("[\"fh\", \"bs\"]", "[\"bs\", \"bs\"]"),
        "x.toml:8: link `wired` leads from `bs` to itself"
    );
    let third = "fh = { profile = \"bsd95\" }\nthird = { profile = \"bsd95\" }";
    let text = GOOD.replacen("fh = { profile = \"bsd95\" }", third, 1);
    assert_eq!(
        error(&text.replacen("from = \"fh\"", "from = \"third\"", 1), &[]),
        "x.toml:19: flow `transfer`: no links lead from `third` to `mh`"
    );
}

#[test]
fn channels() {
    let host = GOOD.replace("[stations]", "far = { profile = \"bsd95\" }\n[stations]");
    let far = |more: &str| error(&format!("{host}[links.far]\n{more}\n"), &[]);
    let between = "between = [\"bs\", \"far\"]\nchannel = \"air\"\n";
    assert_eq!(far(&format!("{between}errors = {{ loss = \"9%\" }}\ndelay = \"7ms\"")), "no error");
    assert_eq!(
        far(&format!("{between}rate = \"3mbit\"")),
        "x.toml:25: link `air` and the links on its channel may differ in `errors`, `generator`, \
         `handoff` and, without `mac` and `wifi`, `delay` and `variation` only"
    );
    assert_eq!(
        far(&between.replace("\"air\"", "\"ari\"")),
        "x.toml:25: unknown link `ari`; known are air, far, wired"
    );
    assert_eq!(
        far(&between.replace("\"air\"", "\"far\"")),
        "x.toml:25: link `far` has a `channel` itself; name that link"
    );
    let fits = "must join two nodes that its `channel` does not join yet, with `between` the same \
                way round";
    for between in ["\"bs\", \"mh\"", "\"far\", \"bs\""] {
        let found = far(&format!("between = [{between}]\nchannel = \"air\""));
        assert_eq!(found, format!("x.toml:23: link `far` {fits}"));
    }
}

#[test]
fn moves() {
    let moves = |host: &str, to: &str| {
        let step = format!("[[moves]]\nat = \"5s\"\nhost = \"{host}\"\nto = \"{to}\"\n");
        error(&format!("{GOOD}{step}"), &[])
    };
    assert_eq!(moves("mh", "bs"), "no error");
    assert_eq!(moves("hm", "bs"), "x.toml:24: unknown host or station `hm`; known are fh, mh, bs");
    assert_eq!(moves("bs", "bs"), "x.toml:24: `bs` is a station; hosts move");
    assert_eq!(moves("mh", "fh"), "x.toml:25: host `mh` has no link to a station `fh`");
    assert_eq!(
        error(&format!("{GOOD}[[moves]]\nhost = \"mh\"\n"), &[]),
        "x.toml:22: the key `at` is missing"
    );
}

#[test]
fn sweeps() {
    let sweep = |axes: &str| error(&format!("{GOOD}[sweep]\n{axes}\n"), &[]);
    assert_eq!(
        sweep("loss = { key = \"links.air.errors.loss\", from = 0, to = 1, step = 1e-9 }"),
        "x.toml:23: the range has more than 1000000 values"
    );
    let each = "step = 0.0001 }";
    assert_eq!(
        sweep(&format!(
            "loss = {{ key = \"links.air.errors.loss\", from = 0, to = 0.9999, {each}\nseed = {{ \
             key = \"seed\", from = 1, to = 100000, step = 1 }}"
        )),
        "x.toml:23: the sweep has 1000000000 runs; 1000000 are the most at a time"
    );
    assert_eq!(
        sweep("d = { key = \"links.air.delay\", from = \"1ms\", to = \"1s\", factor = 2 }"),
        "x.toml:23: the range's ends 1ms and 1s must be written in the same unit"
    );
    assert_eq!(
        sweep("d = { key = \"links.air.dealy\", values = [\"1ms\"] }"),
        "x.toml:23: unknown key `dealy`; did you mean `delay`?"
    );
    assert_eq!(
        sweep("d = { key = \"links.air.delay\", values = [\"1ms\", \"1mm\"] }"),
        "x.toml:23: duration \"1mm\" must be a number with ns, us, ms, s, min or h, such as 40ms"
    );
    assert!(sweep("d = { key = \"links.air.delay\" }").contains("needs `key` with `values`"));
    assert!(sweep("d = [\"1ms\"]").starts_with("x.toml:23: a sweep is a table, such as d = {"));
}

#[test]
fn sizes() {
    let deep = "a.".repeat(100_000) + "a";
    let parts = "a key has at most 80 parts";
    assert_eq!(error(GOOD, &[(&deep, "1")]), format!("--set {deep}=1: {parts}"));
    let sweep = format!("{GOOD}[sweep]\nx = {{ key = \"{deep}\", values = [1] }}\n");
    assert_eq!(error(&sweep, &[]), format!("x.toml:23: {parts}"));
    let most = "`count` must be from 1 to 1000000, not 1000001";
    assert_eq!(with("bytes =", "count = 1_000_001\nbytes ="), format!("x.toml:21: {most}"));
    let long = format!("{GOOD}# {}\n", "x".repeat(16 << 20));
    assert_eq!(error(&long, &[]), "x.toml:1: a scenario has at most 16 MiB");
    // A file that does not end.
    let endless = Experiment::load("/dev/zero".as_ref(), &[]).unwrap_err().to_string();
    assert_eq!(endless, "/dev/zero:1: a scenario has at most 16 MiB");
}

#[test]
fn settings_from_the_command_line() {
    assert_eq!(error(GOOD, &[("links.air.rate", "3mbit")]), "no error");
    let sweep = ("sweep.d", "{ key = 'links.air.delay', values = ['1ms', '2ms', '\"'] }");
    assert_eq!(
        error(GOOD, &[sweep]),
        "--set sweep.d={ key = 'links.air.delay', values = ['1ms', '2ms', '\"'] }: duration \
         \"\\\"\" must be a number with ns, us, ms, s, min or h, such as 40ms"
    );
    assert_eq!(
        error(GOOD, &[("runs", "1"), ("links.air.rat", "3mbit")]),
        "--set links.air.rat=3mbit: unknown key `rat`; did you mean `rate`?"
    );
    assert_eq!(
        error(GOOD, &[("runs", "-5")]),
        "--set runs=-5: found integer `-5` where a whole number, not negative, belongs"
    );
    assert_eq!(
        error(GOOD, &[("title.x", "1")]),
        "--set title.x=1: `title` is not a table, so it has no `x`"
    );
    assert_eq!(
        error(GOOD, &[("runs", "1000000000")]),
        "--set runs=1000000000: the sweep has 1000000000 runs; 1000000 are the most at a time"
    );
}

#[test]
fn a_link_protocol_at_one_end_only() {
    let one = GOOD.replace("snoop95\", settings.snoop95.dupack_threshold = 1", "tulip\"");
    assert_eq!(
        error(&one, &[]),
        "x.toml:7: station `bs` has the link protocol `tulip`, which both ends of a link must \
         have, and `mh` at the other end has not"
    );
    let radio = "radio = { agent = \"plain\" }\n[links.wired]";
    let inside = "[links.inside]\nbetween = [\"radio\", \"mh\"]\nrate = \"1gbit\"\n\
                  delay = \"0ms\"\n[flows.transfer]";
    let two = one.replace("[links.wired]", radio).replace("[flows.transfer]", inside);
    let two = two.replace("between = [\"bs\", \"mh\"]", "between = [\"bs\", \"radio\"]");
    assert_eq!(
        error(&two, &[]),
        "x.toml:7: station `bs` has the link protocol `tulip`, which both ends of a link must \
         have, and `radio` at the other end has not"
    );
    assert_eq!(error(&two, &[("stations.radio.agent", "tulip")]), "no error");
    let lack = error(&two, &[("stations.radio.agent", "lack")]);
    assert!(lack.contains("and `radio` at the other end has not"), "{lack}");
    let nobody = error(&two, &[("stations.bs.peer", "mh")]);
    assert_eq!(
        nobody,
        "--set stations.bs.peer=mh: `peer` must be the name of one station, and `mh` is not"
    );
}

#[test]
fn variation_of_the_delay() {
    let vary = |table: &str| {
        let air = GOOD.replace("air = true\n", &format!("air = true\nvariation = {table}\n"));
        assert_ne!(air, GOOD);
        error(&air, &[])
    };
    assert_eq!(vary("{ every = \"15s\", step = \"30ms\", jitter = \"1ms\" }"), "no error");
    assert_eq!(vary("{ jitter = \"1ms\", in_order = true }"), "no error");
    assert_eq!(vary("{ detour = { share = \"5%\", delay = \"9ms\" } }"), "no error");
    assert_eq!(vary("{ turns = [\"10ms\", \"30ms\"] }"), "no error");
    let refused = |table: &str, why: &str| {
        let message = vary(table);
        assert!(message.ends_with(why), "{table}: {message}");
    };
    refused("{ step = \"30ms\" }", "a `variation` has both `every` and `step`, or neither");
    let limits = "`every` is at least 1ms, and `step`, `jitter` and the `delay` of a `detour` are \
                  at most 10s";
    refused("{ every = \"1us\", step = \"30ms\" }", limits);
    refused("{ every = \"1s\", step = \"11s\" }", limits);
    refused("{ jitter = \"11s\" }", limits);
    refused("{ detour = { share = \"5%\", delay = \"11s\" } }", limits);
    let turns = "`turns` are two times from 1ms to 10s, the shorter one first";
    refused("{ turns = [\"30ms\", \"10ms\"] }", turns);
    refused("{ turns = [\"0ms\", \"10ms\"] }", turns);
    refused(
        "{ jitter = \"1ms\" }\narq = { retries = 3 }",
        "has no `mac`, `wifi`, `arq` and `airmail`",
    );
}

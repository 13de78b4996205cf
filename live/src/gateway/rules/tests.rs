//! Every small flow against every small rule, by a second, plainer reading of the rules.

use super::*;

const MOBILE: [&str; 3] = ["10.1.2.3", "10.200.0.1", "2001:db8::5"];
const FIXED: [&str; 3] = ["192.0.2.7", "10.1.9.9", "2001:db8:1::7"];
const PORTS: [u16; 4] = [0, 443, 8_000, 65_535];

fn key(mobile: (&str, u16), fixed: (&str, u16)) -> FlowKey {
    let end = |(address, port): (&str, u16)| Endpoint::from((ip(address), port));
    FlowKey { wired: end(fixed), air: end(mobile) }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Each combination of addresses, ports and a few codepoints.
fn flows() -> Vec<(FlowKey, u8)> {
    let mut flows = Vec::new();
    for (mobile, fixed) in MOBILE.into_iter().flat_map(|m| FIXED.map(|f| (m, f))) {
        for (here, there) in PORTS.into_iter().flat_map(|h| PORTS.map(|t| (h, t))) {
            flows.extend([0, 34, 63].map(|dscp| (key((mobile, here), (fixed, there)), dscp)));
        }
    }
    flows
}

/// A condition, and the same in a closure.
type Plain = (&'static str, fn(&FlowKey, u8) -> bool);

fn has_leading(address: IpAddr, wanted: &str) -> bool {
    address.to_string().starts_with(wanted)
}

const CONDITIONS: [Plain; 10] = [
    ("10.1.0.0/16", |k, _| has_leading(k.air.ip(), "10.1.") || has_leading(k.wired.ip(), "10.1.")),
    ("mobile:10.0.0.0/8", |k, _| has_leading(k.air.ip(), "10.")),
    ("fixed:10.0.0.0/8", |k, _| has_leading(k.wired.ip(), "10.")),
    ("fixed:192.0.2.7", |k, _| k.wired.ip() == ip("192.0.2.7")),
    ("mobile:2001:db8::/48", |k, _| has_leading(k.air.ip(), "2001:db8::")),
    ("fixed:::/0", |k, _| k.wired.ip().is_ipv6()),
    ("mobile:0.0.0.0/0", |k, _| k.air.ip().is_ipv4()),
    ("port:443", |k, _| k.air.port == 443 || k.wired.port == 443),
    ("port:8000-65535", |k, _| k.air.port >= 8_000 || k.wired.port >= 8_000),
    ("dscp:af41", |_, dscp| dscp == 34),
];

fn rules(texts: &[&str]) -> FlowRules {
    FlowRules::parse(texts.iter().copied()).unwrap()
}

#[test]
fn each_condition_and_each_pair_mean_what_they_say() {
    let flows = flows();
    for (a, plain_a) in CONDITIONS {
        for (b, plain_b) in CONDITIONS {
            let both = rules(&[&format!("{a},{b}")]);
            let either = rules(&[a, b]);
            let without = rules(&[a, &format!("!{b}")]);
            let only_without = rules(&[&format!("! {a}, {b}")]);
            for (key, dscp) in &flows {
                let (a_holds, b_holds) = (plain_a(key, *dscp), plain_b(key, *dscp));
                let chosen = |rules: &FlowRules| rules.chooses(key, *dscp);
                assert_eq!(chosen(&both), a_holds && b_holds, "{both} of {key:?}");
                assert_eq!(chosen(&either), a_holds || b_holds, "{either} of {key:?}");
                assert_eq!(chosen(&without), a_holds && !b_holds, "{without} of {key:?}");
                assert_eq!(chosen(&only_without), !(a_holds && b_holds), "{only_without}");
            }
        }
    }
}

#[test]
fn no_rule_chooses_everything() {
    let all = FlowRules::default();
    assert!(all.is_all() && flows().iter().all(|(key, dscp)| all.chooses(key, *dscp)));
    assert!(!rules(&["!port:1"]).is_all());
    assert_eq!(all.to_string(), "all");
}

#[test]
fn what_is_printed_is_read_back() {
    for (a, _) in CONDITIONS {
        for (b, _) in CONDITIONS {
            for text in [a.to_owned(), format!("!{b},{a}"), format!("{a},{b},dscp:7")] {
                let rule: FlowRule = text.parse().unwrap();
                assert_eq!(rule.to_string().parse(), Ok(rule.clone()), "{text}");
                assert_eq!(rule.to_string(), text);
            }
        }
    }
}

#[test]
fn every_codepoint_has_a_number_and_some_a_name() {
    for codepoint in 0..=63 {
        let rule: FlowRule = format!("dscp:{codepoint}").parse().unwrap();
        let named: FlowRule = rule.to_string().parse().unwrap();
        assert_eq!(rule, named);
        let key = key((MOBILE[0], 1), (FIXED[0], 2));
        let matching: Vec<u8> = (0..=63).filter(|dscp| rule.matches(&key, *dscp)).collect();
        assert_eq!(matching, [codepoint]);
    }
    assert_eq!("dscp:AF41".parse::<FlowRule>(), "dscp:34".parse());
}

#[track_caller]
fn assert_refused(rule: &str, with: &str) {
    let why = rule.parse::<FlowRule>().unwrap_err();
    assert!(why.contains(with) && why.contains(&format!("{rule:?}")), "{why}");
}

#[test]
fn a_wrong_rule_is_told_what_would_be_right() {
    for text in ["", "!", "port:443,", "wlan0", "mobil:10.0.0.0/8", "10.0.0.0/33", "a,b"] {
        assert_refused(text, "write a prefix such as");
    }
    assert_refused("10.0.0.1/8", "write 10.0.0.0/8, or 10.0.0.1");
    assert_refused("!fixed:2001:db8::1/32", "write 2001:db8::/32, or 2001:db8::1");
    for text in ["port:", "port:70000", "port:9-8", "port:-5", "port:https"] {
        assert_refused(text, "write port:443 or port:8000-8999");
    }
    for text in ["dscp:64", "dscp:af44", "dscp:-1", "dscp:"] {
        assert_refused(text, "0 to 63");
    }
    let many = FlowRules::parse(vec!["port:1"; MAX_RULES + 1]).unwrap_err();
    assert!(many.contains("at most 256"), "{many}");
}

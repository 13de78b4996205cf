//! Any text as the configuration of a gateway and of a link: it is refused with one sentence that
//! names a line of the text, or makes a configuration; and any text as a flow rule, which is read
//! as it is written.

#[path = "."]
mod gateway {
    #[path = "../../../cli/src/gateway/file.rs"]
    mod file;
    #[path = "../../../cli/src/gateway/options.rs"]
    mod options;

    /// The interface of the configuration that a text makes.
    pub(crate) fn read(name: &str, text: &str) -> Result<String, String> {
        let (options, _) = file::read_text(name, text)?;
        let both = options.clone().over(options::Options::default());
        assert_eq!(format!("{both:?}"), format!("{options:?}"), "defaults change nothing");
        Ok(options.config("air0").expect("each of its values was right").interface)
    }
}

#[path = "."]
mod link {
    #[path = "../../../cli/src/link/file.rs"]
    mod file;
    #[path = "../../../cli/src/link/options.rs"]
    mod options;

    /// Whether a text makes a configuration.
    pub(crate) fn read(name: &str, text: &str) -> Result<(), String> {
        let (options, _) = file::read_text(name, text, std::path::Path::new("folder"))?;
        let peers = options.peers.len();
        let both = options::Options::default().over(options).expect("no flags");
        assert_eq!(both.peers.len(), peers.max(1));
        if peers > 1 {
            let is_whole =
                |peer: &options::Peer| peer.key.is_some() && !peer.allowed_ips.is_empty();
            assert!(peers <= airmend_live::tunnel::MAX_PEERS && both.peers.iter().all(is_whole));
        }
        let again = options::Options::default().over(both.clone()).expect("no flags");
        assert_eq!(format!("{again:?}"), format!("{both:?}"), "defaults change nothing");
        Ok(())
    }
}

use airmend_live::gateway::rules::FlowRule;

pub(crate) fn fuzz(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    match gateway::read("fuzz", text) {
        Ok(interface) => assert_eq!(interface, "air0"),
        Err(sentence) => check(text, &sentence),
    }
    if let Err(sentence) = link::read("fuzz", text) {
        check(text, &sentence);
    }
    match text.parse::<FlowRule>() {
        Ok(rule) => assert_eq!(rule.to_string().parse(), Ok(rule)),
        Err(sentence) => assert_eq!(sentence.lines().count(), 1, "{sentence}"),
    }
}

/// It has one line, and names one of the text.
fn check(text: &str, sentence: &str) {
    let line = sentence.strip_prefix("fuzz:").and_then(|rest| rest.split(':').next());
    let line: usize = line.and_then(|line| line.parse().ok()).expect(sentence);
    assert!((1..=text.matches('\n').count() + 1).contains(&line), "{sentence}");
    assert_eq!(sentence.lines().count(), 1, "{sentence}");
}

//! The configuration file of a link.

use super::options::{EXCLUSIVE, OPTION_NAMES, Options, PEER_NAMES, Peer, address, network};
use crate::config_file::{Fault, in_order, not_single, parse_text, text_of, unknown};
use airmend_live::tunnel::{MAX_PEERS, Network};
use airmend_proto::agents::AgentConfig;
use airmend_sim::to_text;
use std::collections::HashMap;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Addresses of the interface, and networks of a peer, at most.
const MOST: usize = 256;
/// Networks of all peers at most: each is a route or two.
const MOST_NETWORKS: usize = 1_024;

/// Parses the file, and says whether it sets anything; an error is a sentence with file and line.
pub(super) fn read(path: &Path) -> Result<(Options, bool), String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    read_text(&path.display().to_string(), &text_of(path)?, folder)
}

/// The same of text; `name` stands for it in errors, and paths in it are relative to `folder`.
pub(super) fn read_text(name: &str, text: &str, folder: &Path) -> Result<(Options, bool), String> {
    parse_text(name, text, |table| Ok((parse(table, folder)?, !table.is_empty())))
}

fn parse(table: &DeTable<'_>, folder: &Path) -> Result<Options, Fault> {
    let mut options = Options::default();
    for (name, value) in in_order(table) {
        match (name.get_ref().as_ref(), value.get_ref()) {
            ("address", _) => options.address = list(value, "address", address)?,
            ("set", DeValue::Table(table)) => options.set = settings(table)?,
            ("set", _) => {
                let message = "`set` must be a table of the link protocol's constants: [set]";
                return Err(Fault::new(value.span(), message));
            }
            ("peer", DeValue::Array(peers)) => options.peers = all_peers(peers, folder)?,
            ("peer", _) => return Err(no_peer(value)),
            (key, scalar) => {
                let text = to_text(scalar).ok_or_else(|| not_single(key, value, &OPTION_NAMES))?;
                match options.set_from_text(key, &text, folder) {
                    None => return Err(Fault::new(name.span(), unknown_option(key))),
                    Some(result) => result.map_err(|why| wrong(value, key, &why))?,
                }
            }
        }
    }
    exclusive(table)?;
    check_agent(table, &options)?;
    Ok(options)
}

/// Rules and settings are tried on the agent of the file, so that an error has its line.
fn check_agent(table: &DeTable<'_>, options: &Options) -> Result<(), Fault> {
    let mut agent = match &options.arq {
        Some(agent) => agent.clone(),
        None => AgentConfig::by_name("tulip").map_err(|message| Fault::new(0..0, message))?,
    };
    let value = |wanted: &str| {
        table.iter().find(|(name, _)| name.get_ref() == wanted).map(|(_, value)| value)
    };
    if let (Some(rules), Some(value), false) = (&options.class, value("class"), agent.is_plain()) {
        agent.set("classes", rules).map_err(|why| wrong(value, "class", &why))?;
    }
    let Some(DeValue::Table(settings)) = value("set").map(Spanned::get_ref) else { return Ok(()) };
    for (name, value) in in_order(settings) {
        let text = to_text(value.get_ref()).unwrap_or_default();
        agent.set(name.get_ref(), &text).map_err(|why| Fault::new(name.span(), why))?;
    }
    Ok(())
}

/// Two keys of which one is too many, at the line of the second.
fn exclusive(table: &DeTable<'_>) -> Result<(), Fault> {
    let place = |wanted: &str| {
        table.iter().find(|(name, _)| name.get_ref() == wanted).map(|(name, _)| name.span())
    };
    for (one, other) in EXCLUSIVE {
        if let (Some(first), Some(second)) = (place(one), place(other)) {
            let later = if first.start > second.start { first } else { second };
            let message = format!("`{one}` and `{other}` exclude each other; give one of them");
            return Err(Fault::new(later, message));
        }
    }
    Ok(())
}

/// One text, or a list of them, each of which may hold several with commas between them.
fn list<T>(
    value: &Spanned<DeValue<'_>>,
    key: &str,
    read: fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Fault> {
    let values = match value.get_ref() {
        DeValue::Array(values) => values.iter().collect(),
        _ => vec![value],
    };
    let mut all = Vec::new();
    for value in values {
        let DeValue::String(text) = value.get_ref() else {
            let message = format!("`{key}` must be a text or a list of texts");
            return Err(Fault::new(value.span(), message));
        };
        for part in text.split(',') {
            all.push(read(part.trim()).map_err(|why| wrong(value, key, &why))?);
        }
    }
    if all.len() > MOST {
        return Err(Fault::new(value.span(), format!("`{key}` may have {MOST} entries at most")));
    }
    Ok(all)
}

fn settings(table: &DeTable<'_>) -> Result<Vec<(String, String)>, Fault> {
    let setting = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let name: &toml::de::DeString<'_> = name.get_ref();
        let text = to_text(value.get_ref());
        let message = || format!("`{}` must be a single value", name.escape_debug());
        Ok((name.to_string(), text.ok_or_else(|| Fault::new(value.span(), message()))?))
    };
    in_order(table).into_iter().map(setting).collect()
}

fn all_peers(tables: &DeArray<'_>, folder: &Path) -> Result<Vec<Peer>, Fault> {
    if let Some(value) = tables.get(MAX_PEERS) {
        let message = format!("a link has {MAX_PEERS} [[peer]] at most");
        return Err(Fault::new(value.span(), message));
    }
    let peers = tables.iter().map(|value| one_peer(value, folder));
    let peers = peers.collect::<Result<Vec<_>, _>>()?;
    if peers.len() > 1 {
        tell_apart(tables, &peers)?;
    }
    Ok(peers)
}

/// Several peers are known by their keys and addresses, of which none is another one's.
fn tell_apart(tables: &DeArray<'_>, peers: &[Peer]) -> Result<(), Fault> {
    let (mut keys, mut networks) = (HashMap::new(), HashMap::<Network, usize>::new());
    for (number, (value, peer)) in tables.iter().zip(peers).enumerate() {
        let fault = |message: String| Err(Fault::new(value.span(), message));
        let title = |number: usize| {
            let name = peers.get(number).and_then(|peer| peer.name.clone());
            name.unwrap_or_else(|| format!("number {}", number + 1))
        };
        let Some(key) = peer.key else {
            return fault("with several [[peer]] each needs a `key`".to_owned());
        };
        if let Some(other) = keys.insert(key.to_string(), number) {
            return fault(format!("this `key` is also that of the peer {}", title(other)));
        }
        if peer.allowed_ips.is_empty() {
            let message = "with several [[peer]] each needs `allowed-ips`: its address on the \
                           link, such as 10.9.0.2/32, and the networks behind it";
            return fault(message.to_owned());
        }
        for network in &peer.allowed_ips {
            let other = networks.insert(*network, number).filter(|other| *other != number);
            if let Some(other) = other {
                let (address, prefix) = network;
                let other = title(other);
                return fault(format!(
                    "`allowed-ips`: {address}/{prefix} is also the peer {other}'s"
                ));
            }
        }
        if networks.len() > MOST_NETWORKS {
            return fault(format!("all peers together have {MOST_NETWORKS} networks at most"));
        }
    }
    Ok(())
}

fn one_peer(value: &Spanned<DeValue<'_>>, folder: &Path) -> Result<Peer, Fault> {
    let mut peer = Peer::default();
    let DeValue::Table(table) = value.get_ref() else { return Err(no_peer(value)) };
    for (name, value) in in_order(table) {
        let key = name.get_ref().as_ref();
        if key == "allowed-ips" {
            peer.allowed_ips = list(value, key, network)?;
            continue;
        }
        let text = to_text(value.get_ref()).ok_or_else(|| not_single(key, value, &PEER_NAMES))?;
        match peer.set_from_text(key, &text, folder) {
            None => return Err(Fault::new(name.span(), unknown(key, &PEER_NAMES))),
            Some(result) => result.map_err(|why| wrong(value, key, &why))?,
        }
    }
    Ok(peer)
}

fn no_peer(value: &Spanned<DeValue<'_>>) -> Fault {
    let message = "the peer is a table: write [[peer]], and below it key and endpoint";
    Fault::new(value.span(), message)
}

fn wrong(value: &Spanned<DeValue<'_>>, key: &str, why: &str) -> Fault {
    Fault::new(value.span(), format!("`{key}`: {why}"))
}

/// What is a flag of the peer is a key of its table.
fn unknown_option(key: &str) -> String {
    match key {
        "peer-key" => "`peer-key` is `key` in a table [[peer]]".to_owned(),
        "psk-file" | "allowed-ips" => format!("`{key}` belongs into a table [[peer]]"),
        _ => unknown(key, &OPTION_NAMES),
    }
}

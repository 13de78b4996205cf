//! `airmend link import`: the file of wg-quick(8) as the file of a link. What has no counterpart is
//! told in comments; no secret is taken over.

use crate::config_file::text_of;
use crate::process::BadUsage;
use anyhow::Result;
use clap::Args;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// `airmend link import`.
#[derive(Args, Clone, Debug)]
pub(super) struct ImportArgs {
    /// The file of wg-quick(8), such as /etc/wireguard/home.conf.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Prints the link's file.
pub(super) fn import(args: &ImportArgs) -> Result<()> {
    let stem = args.file.file_stem().unwrap_or_default().to_string_lossy();
    let made = imported(&args.file, &stem, &text_of(&args.file).map_err(BadUsage)?);
    Ok(io::stdout().write_all(made.map_err(BadUsage)?.as_bytes())?)
}

/// The sections of a file as far as they are read.
#[derive(Default)]
struct Imported {
    interface: Vec<String>,
    peers: Vec<Peer>,
    port: Option<u16>,
    up: Vec<String>,
    down: Vec<String>,
    /// What the reader must know.
    notes: Vec<String>,
}

#[derive(Default)]
struct Peer {
    lines: Vec<String>,
    has_endpoint: bool,
}

/// The file of the link `name`, made of this text of `file`; an error is a sentence with its line.
fn imported(file: &Path, name: &str, text: &str) -> Result<String, String> {
    let mut all = Imported::default();
    let mut is_peer = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let at = |why: String| format!("{}:{}: {why}", file.display(), number + 1);
        match line.to_ascii_lowercase().as_str() {
            "" => continue,
            "[interface]" => is_peer = Some(false),
            "[peer]" => {
                is_peer = Some(true);
                all.peers.push(Peer::default());
            }
            _ => {
                let (key, value) = line.split_once('=').map(|(k, v)| (k.trim(), v.trim())).ok_or(
                    at("this is no line of wg-quick: it has sections and KEY = VALUE".into()),
                )?;
                let is_known = match (is_peer, all.peers.last_mut()) {
                    (Some(true), Some(peer)) => peer.take(key, value, name),
                    (Some(false), _) => all.take(key, value, name),
                    _ => return Err(at("it stands before [Interface] and [Peer]".to_owned())),
                };
                if !is_known.map_err(at)? {
                    all.notes.push(format!("{key} = {value} has no counterpart."));
                }
            }
        }
    }
    all.check_sides();
    Ok(all.into_text(name))
}

impl Imported {
    /// Takes a line of [Interface]; whether it has a counterpart.
    fn take(&mut self, key: &str, value: &str, name: &str) -> Result<bool, String> {
        match key.to_ascii_lowercase().as_str() {
            "privatekey" => self.notes.push(format!(
                "The private key stays where it is. Make another one, airmend keygen \
                 /etc/airmend/link/{name}.key, and give the peers its public half."
            )),
            "address" => self.interface.push(format!("address = {}", networks(value)?)),
            "mtu" => self.interface.push(format!("mtu = {}", number::<u32>(value)?)),
            "listenport" => self.port = Some(number(value)?),
            "dns" => {
                let servers = value.replace(',', " ");
                self.up.push(format!("resolvectl dns $AIRMEND_INTERFACE {servers}"));
            }
            "postup" => self.up.push(value.replace("%i", "$AIRMEND_INTERFACE")),
            "predown" => self.down.push(value.replace("%i", "$AIRMEND_INTERFACE")),
            "table" if value == "auto" => {}
            "table" => {
                self.interface.push("no-routes = true".to_owned());
                if value != "off" {
                    self.notes.push(format!(
                        "Table = {value}: a link sets routes in the main table only; put those of \
                         this one in with `up`."
                    ));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Of two ends exactly one knows where the other is.
    fn check_sides(&mut self) {
        let waits = self.peers.iter().any(|peer| !peer.has_endpoint);
        if waits || self.peers.len() > 1 && self.port.is_some() {
            let port = self.port.unwrap_or(4433);
            self.interface.insert(0, format!("listen = \"[::]:{port}\""));
            if self.port.is_none() {
                self.notes.push("A peer has no endpoint: this end waits, at a port.".to_owned());
            }
        } else if self.port.is_some() {
            self.notes.push(
                "ListenPort: this end knows where the peer is, so that the peer waits. If the peer \
                 has an endpoint for this end, take that out there."
                    .to_owned(),
            );
        }
    }

    fn into_text(self, name: &str) -> String {
        let mut lines = vec![format!("# The link of /etc/airmend/link/{name}.toml.")];
        lines.extend(self.notes.into_iter().map(|note| format!("# {note}")));
        lines.push(String::new());
        lines.extend(self.interface);
        for (key, commands) in [("up", self.up), ("down", self.down)] {
            if !commands.is_empty() {
                lines.push(format!("{key} = {}", quoted(&commands.join(" && "))));
            }
        }
        for peer in self.peers {
            lines.extend([String::new(), "[[peer]]".to_owned()]);
            lines.extend(peer.lines);
        }
        lines.join("\n") + "\n"
    }
}

impl Peer {
    /// Takes a line of [Peer]; whether it has a counterpart.
    fn take(&mut self, key: &str, value: &str, name: &str) -> Result<bool, String> {
        match key.to_ascii_lowercase().as_str() {
            "publickey" => {
                let digits = hexadecimal(value).ok_or(format!("{value:?} is no public key"))?;
                self.lines.push("# WireGuard's key; write the peer's new one here.".to_owned());
                self.lines.push(format!("key = \"{digits}\""));
            }
            "presharedkey" => {
                let file = format!("/etc/airmend/link/{name}.psk");
                self.lines.push(format!("# airmend keygen --psk {file}, the same at both ends."));
                self.lines.push(format!("# psk-file = \"{file}\""));
            }
            "allowedips" => {
                if value.contains("/0") {
                    let note = "# Give the endpoint a route of its own, outside the link.";
                    self.lines.push(note.to_owned());
                }
                self.lines.push(format!("allowed-ips = {}", networks(value)?));
            }
            "endpoint" => {
                self.has_endpoint = true;
                self.lines.push(format!("endpoint = {}", quoted(value)));
            }
            // The end that knows where the other is says something ten times a second.
            "persistentkeepalive" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A list of networks. One of all addresses would be the way to the peer, too: its halves.
fn networks(value: &str) -> Result<String, String> {
    let network = |text: &str| match text {
        "0.0.0.0/0" => Ok("\"0.0.0.0/1\", \"128.0.0.0/1\"".to_owned()),
        "::/0" => Ok("\"::/1\", \"8000::/1\"".to_owned()),
        _ => {
            let longest = if text.contains(':') { 128 } else { 32 };
            let whole =
                if text.contains('/') { text.to_owned() } else { format!("{text}/{longest}") };
            super::options::address(&whole).map(|_| format!("\"{whole}\""))
        }
    };
    let all = value.split(',').map(|text| network(text.trim())).collect::<Result<Vec<_>, _>>()?;
    Ok(format!("[{}]", all.join(", ")))
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{value:?} is no number that fits"))
}

/// A line's text in TOML.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t");
    format!("\"{escaped}\"")
}

/// The 32 bytes of a key in base64 (RFC 4648), as hexadecimal digits.
fn hexadecimal(base64: &str) -> Option<String> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = base64.strip_suffix('=').filter(|digits| digits.len() == 43)?;
    let bits = digits.chars().map(|c| Some(format!("{:06b}", DIGITS.find(c)?)));
    let bits: String = bits.collect::<Option<Vec<_>>>()?.concat();
    let nibble = |at: usize| u8::from_str_radix(bits.get(at..at + 4)?, 2).ok();
    (0..64).map(|n| Some(format!("{:x}", nibble(4 * n)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::file::read_text;
    use super::*;

    fn import(text: &str) -> Result<String, String> {
        imported(Path::new("wg0.conf"), "wg0", text)
    }

    #[test]
    fn what_wg_quick_has_is_a_link() {
        let text = "[Interface]\nPrivateKey = SECRET=\nAddress = 10.9.0.1/24, fd09::1\n\
                    ListenPort = 51820 # any\nDNS = 10.9.0.2\nPostUp = echo \"%i\"\nTable = off\n\
                    PostDown = true\n[Peer]\n\
                    PublicKey = B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw=\n\
                    PresharedKey = SECRET=\nAllowedIPs = 0.0.0.0/0,10.9.0.2\n\
                    PersistentKeepalive = 25\n[Peer]\n\
                    PublicKey = AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\
                    AllowedIPs = 10.9.0.3/32\nEndpoint = [2001:db8::1]:51820\n";
        let made = import(text).unwrap();
        for line in [
            "listen = \"[::]:51820\"",
            "address = [\"10.9.0.1/24\", \"fd09::1/128\"]",
            r#"up = "resolvectl dns $AIRMEND_INTERFACE 10.9.0.2 && echo \"$AIRMEND_INTERFACE\"""#,
            "no-routes = true",
            "# Give the endpoint a route of its own, outside the link.",
            "# PostDown = true has no counterpart.",
            "key = \"07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c\"",
            "allowed-ips = [\"0.0.0.0/1\", \"128.0.0.0/1\", \"10.9.0.2/32\"]",
            "endpoint = \"[2001:db8::1]:51820\"",
        ] {
            assert!(made.lines().any(|found| found == line), "no {line:?} in\n{made}");
        }
        assert!(!made.contains("SECRET"), "{made}");
        let (options, _) = read_text("wg0.toml", &made, Path::new("/")).unwrap();
        assert_eq!(options.peers.len(), 2);
    }

    #[test]
    fn of_two_ends_one_waits() {
        let peer = "[Peer]\nEndpoint = oslo:51820\n";
        let made = import(&format!("[Interface]\nListenPort = 51820\n{peer}")).unwrap();
        assert!(!made.contains("\nlisten") && made.contains("the peer waits"), "{made}");
        let made = import("[Interface]\n[Peer]\nAllowedIPs = 10.9.0.2/32\n").unwrap();
        assert!(made.contains("\nlisten = \"[::]:4433\""), "{made}");
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        for (text, why) in [
            ("Address = 1", "wg0.conf:1: it stands before"),
            ("[Interface]\nx", "wg0.conf:2: this is no line of wg-quick"),
            ("[Interface]\n\nAddress = 10.9.0.1/33", "wg0.conf:3: \"10.9.0.1/33\" is no address"),
            ("[Interface]\nMTU = many", "wg0.conf:2: \"many\" is no number"),
            ("[Peer]\nPublicKey = short", "wg0.conf:2: \"short\" is no public key"),
        ] {
            let said = import(text).unwrap_err();
            assert!(said.starts_with(why), "{said}");
        }
    }
}

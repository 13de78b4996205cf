//! Keys and their files.

use super::error::KeyError;
use super::random::random;
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

const KEY_LEN: usize = 32;
/// What the units of `packaging/` have in the place of a key file that does not exist.
const NO_KEY: &str = "none";

/// A Curve25519 private key. It never appears in messages.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey([u8; KEY_LEN]);

/// A Curve25519 public key, as 64 hexadecimal digits in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; KEY_LEN]);

impl PrivateKey {
    /// A new key from the system's random source.
    pub fn generate() -> Result<Self, KeyError> {
        generate().map(Self)
    }

    /// Reads a key file, which nobody but its owner may be able to read.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        read(path).map(Self)
    }

    /// Writes the key to a new file that only its owner may read and write.
    pub fn write(&self, path: &Path) -> Result<(), KeyError> {
        write(path, &self.0)
    }

    /// The public key that belongs to it.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; KEY_LEN];
        if let Some(mut dh) = DefaultResolver.resolve_dh(&DHChoice::Curve25519) {
            dh.set(&self.0);
            bytes.copy_from_slice(dh.pubkey());
        }
        PublicKey(bytes)
    }

    /// What this key and the peer's public one have in common (X25519), which only the two ends can
    /// compute.
    pub(super) fn agree(&self, peer: &PublicKey) -> [u8; KEY_LEN] {
        let mut common = [0; KEY_LEN];
        if let Some(mut dh) = DefaultResolver.resolve_dh(&DHChoice::Curve25519) {
            dh.set(&self.0);
            dh.dh(&peer.0, &mut common).ok();
        }
        common
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
impl From<[u8; KEY_LEN]> for PrivateKey {
    fn from(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }
}

#[cfg(test)]
impl From<[u8; KEY_LEN]> for PresharedKey {
    fn from(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }
}

/// Only the public half: a private key must not end in a log.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(of {})", self.public())
    }
}

/// A secret that both ends have beside their keys, in a file like a private key's.
#[derive(Clone, PartialEq, Eq)]
pub struct PresharedKey([u8; KEY_LEN]);

impl PresharedKey {
    /// A new key from the system's random source.
    pub fn generate() -> Result<Self, KeyError> {
        generate().map(Self)
    }

    /// Reads a file that nobody but its owner may be able to read.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        read(path).map(Self)
    }

    /// Writes the key to a new file that only its owner may read and write.
    pub fn write(&self, path: &Path) -> Result<(), KeyError> {
        write(path, &self.0)
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey")
    }
}

impl PublicKey {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        parse(text).map(Self).ok_or_else(|| KeyError::Public { text: text.to_owned() })
    }
}

fn generate() -> Result<[u8; KEY_LEN], KeyError> {
    let mut bytes = [0; KEY_LEN];
    random(&mut bytes).map_err(|()| KeyError::NoRandom)?;
    Ok(bytes)
}

/// A user that exists only for a service cannot read the keys of root: systemd keeps copies of them
/// for the service (`LoadCredential=`).
fn read(path: &Path) -> Result<[u8; KEY_LEN], KeyError> {
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    read_beside(path, credentials.as_deref())
}

/// The key in the file, or in its copy among the credentials of the service.
fn read_beside(path: &Path, credentials: Option<&Path>) -> Result<[u8; KEY_LEN], KeyError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => KeyError::Missing { path: path.into() },
        _ => KeyError::Read { path: path.into(), source },
    };
    let copy = credentials.and_then(|directory| Some(directory.join(path.file_name()?)));
    let copy = copy.filter(|copy| copy.exists());
    let file = copy.as_deref().unwrap_or(path);
    let mode = fs::metadata(file).map_err(failed)?.mode() & 0o777;
    // Access lists give a credential bits of the group.
    if mode & 0o077 != 0 && copy.is_none() {
        return Err(KeyError::Permissions { path: path.into(), mode });
    }
    let text = fs::read_to_string(file).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => KeyError::File { path: path.into() },
        _ => failed(error),
    })?;
    match text.trim() {
        NO_KEY if copy.is_some() => Err(KeyError::Missing { path: path.into() }),
        digits => parse(digits).ok_or_else(|| KeyError::File { path: path.into() }),
    }
}

fn write(path: &Path, key: &[u8; KEY_LEN]) -> Result<(), KeyError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => KeyError::Exists { path: path.into() },
        _ => KeyError::Write { path: path.into(), source },
    };
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path);
    let file = file.as_mut().map_err(|error| failed(io::Error::from(error.kind())))?;
    let text = key.map(|byte| format!("{byte:02x}")).concat();
    file.write_all(format!("{text}\n").as_bytes()).map_err(failed)
}

fn parse(text: &str) -> Option<[u8; KEY_LEN]> {
    let digits: Vec<u8> =
        text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    if rest.is_empty() { bytes.try_into().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_public_key_is_that_of_x25519() {
        // Computed with the formulas of RFC 7748 §5 in another language.
        let private: [u8; 32] = std::array::from_fn(|i| i as u8 + 1);
        let expected = "07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c";
        assert_eq!(PrivateKey(private).public().to_string(), expected);
    }

    #[test]
    fn a_service_reads_the_copy_that_is_kept_for_it() {
        let name = format!("airmend-credentials-{}", std::process::id());
        let kept = std::env::temp_dir().join(name);
        fs::create_dir_all(&kept).unwrap();
        let key = PresharedKey::generate().unwrap();
        key.write(&kept.join("home.psk")).unwrap();
        fs::set_permissions(kept.join("home.psk"), Permissions::from_mode(0o440)).unwrap();
        fs::write(kept.join("other.psk"), "none").unwrap();
        let read = |path: &str| read_beside(Path::new(path), Some(&kept));
        assert_eq!(read("/nowhere/home.psk").unwrap(), key.0);
        for missing in ["/nowhere/other.psk", "/nowhere/third.psk"] {
            let why = read(missing).unwrap_err().to_string();
            assert!(why.starts_with(&format!("there is no key file {missing}")), "{why}");
        }
        let open = read_beside(&kept.join("home.psk"), None).unwrap_err().to_string();
        assert!(open.contains("chmod 600"), "{open}");
        fs::remove_dir_all(kept).unwrap();
    }

    #[test]
    fn text_that_is_no_key_is_refused() {
        let good = PrivateKey::generate().expect("random bytes").public();
        assert_eq!(good.to_string().parse::<PublicKey>().expect("the same"), good);
        for bad in ["", "12", &good.to_string()[1..], &format!("{good}00"), &"g".repeat(64)] {
            let error = bad.parse::<PublicKey>().expect_err("no key").to_string();
            assert!(error.contains("64 hexadecimal digits"), "{error}");
        }
    }
}

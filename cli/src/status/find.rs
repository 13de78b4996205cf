//! Which gateways run on this machine.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Every gateway has a directory here, with its socket.
pub(crate) const DIRECTORY: &str = "/run/airmend";

/// The socket of the only gateway that runs, or a sentence if there are none or several.
pub(super) fn the_only_one(directory: &Path) -> Result<PathBuf, String> {
    match &running(directory)[..] {
        [] => Err(format!(
            "no gateway runs here: nobody answers in {}; start one with `airmend gateway IF`, or \
             name the --socket of one that runs",
            directory.display()
        )),
        [interface] => Ok(socket(directory, interface)),
        several => {
            let (count, names) = (several.len(), several.join(", "));
            Err(format!("{count} gateways run here: {names}; name the interface of one of them"))
        }
    }
}

/// The interfaces of all gateways that run, in order.
pub(crate) fn running(directory: &Path) -> Vec<String> {
    let mut running: Vec<String> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|interface| answers(&socket(directory, interface)))
        .collect();
    running.sort();
    running
}

fn socket(directory: &Path, interface: &str) -> PathBuf {
    directory.join(interface).join("status.sock")
}

/// Whether a process listens there, even if this user may not connect.
fn answers(path: &Path) -> bool {
    match UnixStream::connect(path) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn gateways_are_looked_for_where_they_listen() {
        let usual = airmend_live::gateway::default_socket("wlan0");
        assert_eq!(socket(DIRECTORY.as_ref(), "wlan0"), usual);
    }

    #[test]
    fn only_one_that_lives_is_taken() {
        let directory = std::env::temp_dir().join(format!("airmend-find-{}", std::process::id()));
        let listen = |interface: &str| {
            fs::create_dir_all(directory.join(interface)).unwrap();
            UnixListener::bind(socket(&directory, interface)).unwrap()
        };
        assert!(the_only_one(&directory).unwrap_err().contains("`airmend gateway IF`"));
        let first = listen("wlan1");
        drop(listen("dead0"));
        assert_eq!(the_only_one(&directory).unwrap(), socket(&directory, "wlan1"));
        let second = listen("wlan0");
        let several = the_only_one(&directory).unwrap_err();
        assert!(several.starts_with("2 gateways run here: wlan0, wlan1;"), "{several}");
        drop((first, second));
        fs::remove_dir_all(directory).unwrap();
    }
}

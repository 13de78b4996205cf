//! A file that this program makes in a directory which may be everybody's, for its owner alone.

use nix::errno::Errno;
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use nix::unistd::geteuid;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const MODE: u32 = 0o600;

/// Makes the file, or empties the one that this user has made before. Nobody else can choose what
/// is overwritten, nor read what is written: no link is followed, and a file of another user, or
/// with a second name, is left alone.
///
/// # Errors
/// Why not, as a part of a sentence.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    // A pipe without a reader would be waited for.
    let options = options.append(true).create(true).custom_flags(O_NOFOLLOW | O_NONBLOCK);
    let file = options.mode(MODE).open(path).map_err(|error| match error.raw_os_error() {
        Some(number) if number == Errno::ELOOP as i32 => {
            io::Error::other("it is a symbolic link: name the file itself")
        }
        _ => error,
    })?;
    let found = file.metadata()?;
    if found.file_type().is_char_device() {
        return Ok(file);
    }
    if !found.is_file() {
        return Err(io::Error::other("something that is no file has this name: name another one"));
    }
    if found.uid() != geteuid().as_raw() || found.nlink() != 1 {
        return Err(io::Error::other(
            "a file of another user, or one with a second name, is there: name another one",
        ));
    }
    file.set_permissions(Permissions::from_mode(MODE))?;
    file.set_len(0)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    #[test]
    fn only_a_file_of_this_user_is_overwritten() {
        let directory = std::env::temp_dir().join(format!("airmend-output-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let [own, link, second, pipe] =
            ["own", "link", "second", "pipe"].map(|name| directory.join(name));
        fs::write(&own, "what was here before").unwrap();
        symlink(&own, &link).unwrap();
        let why = |path| create(path).unwrap_err().to_string();
        assert!(why(&link).contains("a symbolic link"));
        fs::hard_link(&own, &second).unwrap();
        assert!(why(&second).contains("second name") && why(&own).contains("second name"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(create(&pipe).is_err(), "nobody reads it");
        assert!(why(&directory).contains("directory"));
        assert_eq!(fs::read_to_string(&own).unwrap(), "what was here before");
        fs::remove_file(&second).unwrap();
        fs::set_permissions(&own, Permissions::from_mode(0o644)).unwrap();
        create(&own).unwrap();
        assert_eq!(fs::read_to_string(&own).unwrap(), "");
        assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, MODE);
        if geteuid().is_root() {
            std::os::unix::fs::chown(&own, Some(65_534), None).unwrap();
            assert!(why(&own).contains("another user"));
        }
        fs::remove_dir_all(&directory).unwrap();
    }
}

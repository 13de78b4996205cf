//! `airmend keygen`: a private key in a file of its own, and its public key on the screen.

use crate::link::KeygenArgs;
use airmend_live::tunnel::{PresharedKey, PrivateKey};
use anyhow::Result;
use std::io::{self, Write};

/// Makes a key or a pre-shared key, or shows the public half of one.
pub(crate) fn keygen(args: &KeygenArgs) -> Result<()> {
    if args.psk {
        return Ok(PresharedKey::generate()?.write(&args.file)?);
    }
    let key = if args.show {
        PrivateKey::read(&args.file)?
    } else {
        let key = PrivateKey::generate()?;
        key.write(&args.file)?;
        key
    };
    writeln!(io::stdout(), "{}", key.public())?;
    Ok(())
}

//! `airmend keygen`: a private key in a file of its own, and its public key on the screen.

use crate::link::KeygenArgs;
use airmend_live::tunnel::PrivateKey;
use anyhow::Result;
use std::io::{self, Write};

/// Makes a key, or shows the public half of one.
pub(crate) fn keygen(args: &KeygenArgs) -> Result<()> {
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

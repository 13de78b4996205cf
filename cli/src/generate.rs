//! `airmend generate`: manual pages and shell completions, made from the flags themselves.

use anyhow::{Context, Result};
use clap::{Args, Command, Subcommand};
use clap_complete::Shell;
use std::fs;
use std::path::{Path, PathBuf};

/// The files that can be made; `make install` and the package do so.
#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Write manual pages, one for each command.
    Man(Directory),
    /// Write completions for bash, zsh and fish.
    Completions(Directory),
}

/// The destination.
#[derive(Debug, Args)]
pub(crate) struct Directory {
    /// The directory; it is made if it is not there.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Writes the files of the program whose command line is `cli`.
pub(crate) fn generate(command: &Generate, cli: Command) -> Result<()> {
    match command {
        Generate::Man(to) => man(cli, &made(to)?),
        Generate::Completions(to) => completions(cli, &made(to)?),
    }
}

fn made(Directory { directory }: &Directory) -> Result<PathBuf> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    Ok(directory.clone())
}

fn man(cli: Command, directory: &Path) -> Result<()> {
    clap_mangen::generate_to(cli, directory)
        .with_context(|| format!("cannot write manual pages into {}", directory.display()))
}

fn completions(mut cli: Command, directory: &Path) -> Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut cli, "airmend", directory)
            .with_context(|| format!("cannot write completions into {}", directory.display()))?;
    }
    Ok(())
}

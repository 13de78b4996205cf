//! Compiles the gateway's programs for the kernel, which are C, with clang.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "src/bpf/gateway.bpf.c";
const SEGMENT: &str = "src/bpf/segment.bpf.h";
const HEADERS: &str = "src/bpf/include";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed={SEGMENT}");
    println!("cargo::rerun-if-changed={HEADERS}");
    println!("cargo::rerun-if-env-changed=CLANG");
    let variable = |name| env::var(name).unwrap_or_default();
    let object = PathBuf::from(variable("OUT_DIR")).join("gateway.bpf.o");
    // BPF is of the byte order of the kernel that runs it.
    let target = match variable("CARGO_CFG_TARGET_ENDIAN").as_str() {
        "big" => "bpfeb",
        _ => "bpfel",
    };
    let mut compile = Command::new(clang());
    compile.args(["-target", target, "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-I", HEADERS]);
    compile.args(["-c", SOURCE, "-o"]).arg(object);
    match compile.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!(
            "{compile:?} ended with {status}: see what it says above; linux/bpf.h comes with the \
             kernel's headers (linux-libc-dev, kernel-headers or linux-headers)"
        ),
        Err(error) => panic!("clang cannot be started ({error}): install it or set CLANG"),
    }
}

/// The compiler: what the environment says, or the first that runs.
fn clang() -> String {
    let names = ["clang", "clang-14", "clang-19", "clang-16"].map(str::to_owned);
    let runs = |name: &String| Command::new(name).arg("--version").output().is_ok();
    env::var("CLANG").ok().or_else(|| names.into_iter().find(runs)).unwrap_or("clang".to_owned())
}

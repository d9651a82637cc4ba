//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The library installs a handler of SIGBUS, which must stay in memory after `dlclose`.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}

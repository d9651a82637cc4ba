//! Clients in Go: nak, and a program over go-nostr.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::process::Relay;
use crate::skip::skipped;

/// A secret key, and the author of its events.
const SECRET: &str = "0000000000000000000000000000000000000000000000000000000000000017";
const AUTHOR: &str = "2fa2104d6b38d11b0230010559879124e42ab8dfeff5ff29dc9cdadd4ecacc3f";

fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// Run nak; the lines that it prints.
fn nak(args: &[&str]) -> Vec<String> {
    let output = Command::new("nak").args(args).output().unwrap();
    assert!(output.status.success(), "nak {args:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The id in an event's line.
fn id_of(line: &str) -> &str {
    let (_, id) = line.split_once("\"id\":\"").unwrap();
    &id[..64]
}

#[test]
fn nak_posts_queries_and_deletes() {
    if Command::new("nak").arg("--version").output().is_err() {
        return skipped("nak is not installed (scripts/nak.sh)");
    }
    let place = TempDir::new().unwrap();
    let relay = Relay::on(place.path());
    let url = relay.url.as_str();
    let post = |args: &[&str]| nak(&[&["event", "--sec", SECRET], args, &[url]].concat()).remove(0);
    let query = |relay: &str| -> Vec<String> {
        let found = nak(&["req", "-a", AUTHOR, "-l", "10", relay]);
        found.iter().map(|line| id_of(line).to_owned()).collect()
    };
    let first = post(&["-k", "1", "--ts", "1699485669", "-c", "first"]);
    let second = post(&["-k", "1", "--ts", "1699485670", "-c", "second"]);
    assert_eq!(query(url), [id_of(&second), id_of(&first)]);
    let gone = post(&["-k", "5", "--ts", "1699485671", "-e", id_of(&first)]);
    assert_eq!(query(url), [id_of(&gone), id_of(&second)]);
    relay.stop();
    let relay = Relay::on(place.path());
    assert_eq!(query(&relay.url), [id_of(&gone), id_of(&second)]);
}

/// nak is a command over this library. The program posts, queries, counts, subscribes and deletes.
#[test]
fn go_nostr_posts_queries_subscribes_and_deletes() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/relay/go");
    let place = TempDir::new().unwrap();
    let program = place.path().join("client");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).current_dir(source);
    match build.env("GOFLAGS", "-buildvcs=false -mod=readonly").output() {
        Ok(built) if built.status.success() => {}
        Ok(built) => return skipped(&format!("no go-nostr: {}", said(&built))),
        Err(error) => return skipped(&format!("no go-nostr: go does not run: {error}")),
    }
    let relay = Relay::on(&place.path().join("events"));
    let output = Command::new(program).arg(&relay.url).output().unwrap();
    assert!(output.status.success() && said(&output).ends_with("ok\n"), "{}", said(&output));
}

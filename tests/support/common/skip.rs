//! A test that cannot run here says why.

/// A part of a reason, ` | `, and why that is fine.
const ALLOWED: &str = include_str!("../../allowed_skips.txt");

/// Say why a test is skipped. With `DEEDBOOK_REQUIRE_ALL`, panics unless the list allows it.
#[allow(clippy::print_stdout)]
pub fn skipped(why: &str) {
    println!("skipped: {why}");
    let is_required = std::env::var_os("DEEDBOOK_REQUIRE_ALL").is_some_and(|all| all == "1");
    assert!(!is_required || is_allowed(why), "tests/allowed_skips.txt does not allow it: {why}");
}

fn is_allowed(why: &str) -> bool {
    let mut parts = ALLOWED.lines().filter_map(|line| line.split_once(" | "));
    parts.any(|(part, _)| why.contains(part))
}

//! Seeded bugs: wrong code that the tests have to catch, each under the name of a story (`tests/stories.txt`).
//!
//! They are compiled with `--cfg seeded` only, and one is on while the environment variable `DEEDBOOK_SEEDED` names it.
//! `make stories` switches each on.

/// `seeded!(right, "name" => wrong)`: the right expression; the wrong one while the story is on.
/// `seeded!("name" => wrong)`: nothing; a statement more while the story is on.
#[cfg(not(seeded))]
macro_rules! seeded {
    ($right:expr, $name:literal => $wrong:expr) => {
        $right
    };
    ($name:literal => $wrong:expr) => {};
}

#[cfg(seeded)]
macro_rules! seeded {
    ($right:expr, $name:literal => $wrong:expr) => {
        if crate::ground::seeded::is($name) { $wrong } else { $right }
    };
    ($name:literal => $wrong:expr) => {
        if crate::ground::seeded::is($name) {
            $wrong;
        }
    };
}

/// Whether the story is on.
#[cfg(seeded)]
pub fn is(name: &str) -> bool {
    static ON: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    ON.get_or_init(|| std::env::var("DEEDBOOK_SEEDED").ok()).as_deref() == Some(name)
}

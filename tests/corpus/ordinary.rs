//! Ordinary text: what pinned packages hold, and logs that are made here.
//!
//! Nothing of it is committed: `manifest.txt` names packages, versions, what is taken of them and the digest of what is taken.
//! Deliberately absent: installing the packages, which `tests/run` does.

use std::{
    collections::HashMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use aws_lc_rs::digest;

/// One part of the ordinary text.
pub(crate) struct Part {
    /// The package and its version.
    pub(crate) name: String,
    /// Its files, in the order of their paths; each is inspected by itself.
    pub(crate) files: Vec<(String, String)>,
    /// What the manifest says: bytes and digest.
    stated: Option<String>,
}

impl Part {
    /// How many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.files.iter().map(|(_, text)| text.len()).sum()
    }

    /// Bytes and digest of all files, as the manifest has it.
    pub(crate) fn digest(&self) -> String {
        let mut all = digest::Context::new(&digest::SHA256);
        for (_, text) in &self.files {
            all.update(text.as_bytes());
        }
        let mut said = format!("{}:", self.bytes());
        for byte in all.finish().as_ref() {
            write!(said, "{byte:02x}").expect("a string takes it");
        }
        said
    }

    /// Whether it is what the manifest says; a part that is made here always is.
    pub(crate) fn as_stated(&self) -> bool {
        self.stated
            .as_ref()
            .is_none_or(|stated| *stated == self.digest())
    }
}

/// Every part that the manifest names, and the logs; or which package is not there.
pub(crate) fn parts() -> Result<Vec<Part>, String> {
    let crates = crates()?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut parts = Vec::new();
    for line in include_str!("manifest.txt").lines() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let [kind, package, version, taken @ ..] = &words[..] else {
            continue;
        };
        let root = match *kind {
            "crate" => crates
                .get(&format!("{package} {version}"))
                .cloned()
                .ok_or_else(|| format!("{package} {version} is not in Cargo.lock any more"))?,
            "npm" => here.join("node_modules").join(package),
            _ => here.join(".python").join(package),
        };
        let mut files = Vec::new();
        walk(&root, &root, taken, &mut files);
        if files.is_empty() {
            return Err(format!(
                "{package} {version} is not installed; tests/run does that"
            ));
        }
        files.sort();
        parts.push(Part {
            name: format!("{package} {version}"),
            files,
            stated: taken
                .iter()
                .find_map(|word| word.strip_prefix('=').map(str::to_owned)),
        });
    }
    parts.push(Part {
        name: "logs".to_owned(),
        files: (0..8)
            .map(|seed| (format!("{seed}.log"), log(seed)))
            .collect(),
        stated: None,
    });
    Ok(parts)
}

fn walk(root: &Path, folder: &Path, taken: &[&str], files: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(root, &path, taken, files);
            continue;
        }
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        let ends = |mark: char| {
            taken
                .iter()
                .filter_map(move |word| word.strip_prefix(mark))
                .any(|end| name.ends_with(end))
        };
        let mut folders = taken.iter().filter(|word| word.ends_with('/')).peekable();
        let inside = folders.peek().is_none() || folders.any(|folder| name.starts_with(folder));
        if inside
            && ends('+')
            && !ends('-')
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            files.push((name, text));
        }
    }
}

/// Where the sources of every locked crate lie, by name and version.
fn crates() -> Result<HashMap<String, PathBuf>, String> {
    #[derive(serde::Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(serde::Deserialize)]
    struct Package {
        name: String,
        version: String,
        manifest_path: PathBuf,
    }
    let output = Command::new(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    let place = |package: Package| {
        let folder = package.manifest_path.parent()?.to_owned();
        Some((format!("{} {}", package.name, package.version), folder))
    };
    Ok(metadata.packages.into_iter().filter_map(place).collect())
}

/// Half a mebibyte of a server's log; the same for the same seed.
fn log(seed: u64) -> String {
    const PATHS: [&str; 6] = [
        "/api/v1/orders",
        "/healthz",
        "/static/app.js",
        "/login",
        "/search?q=größe",
        "/api/v1/users/42",
    ];
    const LEVELS: [&str; 4] = ["INFO", "DEBUG", "WARN", "ERROR"];
    const LINES: [&str; 5] = [
        "request finished",
        "connection reset by peer",
        "cache miss, asking the database",
        "retrying in 250 ms",
        "slow query",
    ];
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut log = String::new();
    while log.len() < 1 << 19 {
        let second = rng.u32(0..86_400);
        writeln!(
            log,
            "2026-11-{:02}T{:02}:{:02}:{:02}.{:03}Z {:5} [worker-{}] {} method=GET path={} status={} bytes={} took={}ms peer=10.{}.{}.{}:{} id={:08x}",
            rng.u8(1..29), second / 3600, second / 60 % 60, second % 60, rng.u16(0..1000), rng.choice(LEVELS).unwrap_or("INFO"),
            rng.u8(0..16), rng.choice(LINES).unwrap_or(""), rng.choice(PATHS).unwrap_or("/"), [200, 204, 304, 404, 500][rng.usize(0..5)],
            rng.u32(0..100_000), rng.u16(1..900), rng.u8(..), rng.u8(..), rng.u8(..), rng.u16(1024..), rng.u32(..),
        )
        .expect("a string takes it");
    }
    log
}

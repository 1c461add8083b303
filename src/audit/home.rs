//! Where the log of one process is: its directory, which no other process writes to meanwhile, and its two keys.
//!
//! Guarantees: one process writes to a directory at a time; another one that wants the same takes a directory of its own in it,
//! `beside-2` and so on, so that a gateway on a laptop never fails because a second one runs; each has a chain of its own,
//! and the same keys; where those are not the ones that records were written with, the log says so, and where records are not
//! there that were; what a process that has ended left there is kept no longer than the rest.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use nix::fcntl::Flock;

use super::{
    Auditor, Rules,
    canonical::{Object, handed},
    chain::Origin,
    journal::{Journal, Kind, event},
    key::{SigningKey, VerifyingKey},
    left::{Caretaker, Neighbours},
    log::{Cuts, Disk, Events, Log, Recovered, Signed, Storage},
    place::{claim, digest_key, drawn, is_keyed, make, signing_key, told},
    recorder::{Bounds, Durability, Keeper, Recorder, Watermarks},
    sinks::{Sinking, SinksSpec},
};

pub use super::place::{Exposed, HomeError, Replaced, Signs, exposed};
use crate::findings::Scrub;

/// How calls are recorded (PRODUCT 12).
#[derive(Debug, Clone)]
pub struct AuditSpec {
    /// Where. `None`: [`default_directory`].
    pub directory: Option<PathBuf>,
    /// When a record counts as safe. Default: [`Durability::Kernel`].
    pub durability: Durability,
    /// How the log is cut, signed and kept.
    pub cuts: Cuts,
    /// How much of which calls is kept.
    pub rules: Rules,
    /// How full the disk may be.
    pub watermarks: Watermarks,
    /// Where records go to beside the files.
    pub sinks: SinksSpec,
    /// What files are made on. Default: [`Disk`].
    pub storage: Arc<dyn Storage>,
}

impl Default for AuditSpec {
    fn default() -> Self {
        Self {
            directory: None,
            durability: Durability::Kernel,
            cuts: Cuts::default(),
            rules: Rules::default(),
            watermarks: Watermarks::default(),
            sinks: SinksSpec::default(),
            storage: Arc::new(Disk),
        }
    }
}

/// The log of this process while it writes.
pub struct Home {
    /// Records calls.
    pub auditor: Auditor,
    /// Records everything else.
    pub journal: Journal,
    // In this order: what ends is written, then it is delivered, then others may write here; to a stream everybody may.
    _ending: Ending,
    _keeper: Keeper,
    /// Where records go to beside the files.
    pub sinks: Vec<Sinking>,
    /// Where the log is; `None` where no files are kept.
    pub directory: Option<PathBuf>,
    /// Who verifies, verifies with this.
    pub key: VerifyingKey,
    /// What was found of the process before.
    pub recovered: Option<Recovered>,
    /// Which keys are not those that were used before.
    pub replaced: Replaced,
    /// Which records were to be found, and were not.
    pub missing: Option<Missing>,
    _caretaker: Option<Caretaker>,
    _lock: Option<Flock<File>>,
}

/// Records that were there once: where the last of a chain are removed, or all, what is left is a chain all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// The last record that is there; 0 where none is.
    pub last: u64,
    /// The last one that a sink was given; `None` where only a key tells that there was a start before.
    pub known: Option<u64>,
}

impl Missing {
    /// What is missing where this was found, in a place that had a key before, or had not, and whose sinks were given this much.
    fn of(found: Option<&Recovered>, keyed: bool, delivered: Option<u64>) -> Option<Self> {
        let last = found.map_or(0, |found| found.last.seq);
        let known = delivered.filter(|delivered| *delivered > last);
        let begun_anew = keyed && found.is_none();
        (begun_anew || known.is_some()).then_some(Self { last, known })
    }

    /// What is noted of it.
    fn tell(&self, detail: &mut Object<'_>) {
        detail.object("missing", |missing| {
            if let Some(known) = self.known {
                missing.number("known", known);
            }
            missing.number("last", self.last);
        });
    }
}

/// Notes the end when it is dropped.
struct Ending(Journal);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.note(Kind::Stop, |_| {});
    }
}

/// Where records go if nothing else is said: the user's directory for state, or `/var/lib/usher/audit` for a user who has none.
pub fn default_directory(vars: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let set = |name| vars(name).filter(|path| path.starts_with('/'));
    let home = || set("HOME").filter(|home| home != "/");
    set("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(Path::new(&home()?).join(".local/state")))
        .unwrap_or_else(|| "/var/lib".into())
        .join("usher/audit")
}

impl Home {
    /// Opens the log, after whoever wrote it last, and begins to record. `boot` names this process, `config` what it was
    /// configured with; `scrub` takes out what must not be kept, and `outside` gets every checkpoint.
    ///
    /// # Errors
    /// [`HomeError`].
    pub fn open(
        spec: &AuditSpec,
        directory: &Path,
        boot: &str,
        config: String,
        scrub: Arc<dyn Scrub>,
        outside: Box<dyn Fn(&Signed) + Send + Sync>,
    ) -> Result<Self, HomeError> {
        let wrong = |path: &Path| {
            let path = path.to_owned();
            move |cause| HomeError::File { path, cause }
        };
        let keeps = spec.storage.keeps_files();
        let mut replaced = Replaced::default();
        let mut keyed = false;
        let (own, lock, signing, digest) = if keeps {
            make(directory).map_err(wrong(directory))?;
            if let Some(exposed) = exposed(directory) {
                return Err(HomeError::Exposed(exposed));
            }
            let (own, lock) = claim(directory)?;
            // Who is the first to write beside another has no records yet, and the same key.
            keyed = own == directory && is_keyed(directory);
            let (signing, signs) = signing_key(directory)?;
            let (digest, digests) = digest_key(directory)?;
            replaced = Replaced {
                signing: signs,
                digests,
            };
            (own, Some(lock), signing, digest)
        } else {
            // Keys of this process alone: the public one is in its first record and in its log.
            let digest = drawn()?.to_vec();
            (PathBuf::new(), None, SigningKey::generate().0, digest)
        };
        let public = signing.public();
        let node = node();
        let origin = Origin {
            node: node.clone(),
            boot: boot.to_owned(),
        };
        let caretaker = keeps
            .then(|| {
                Caretaker::of(Neighbours {
                    home: directory.to_owned(),
                    own: own.clone(),
                    storage: spec.storage.clone(),
                    origin: origin.clone(),
                    cuts: spec.cuts,
                })
            })
            .transpose()
            .map_err(wrong(directory))?;
        let storage = spec.storage.clone();
        let (mut log, recovered) =
            Log::open(storage, &own, origin, signing, spec.cuts).map_err(wrong(&own))?;
        let delivered = keeps.then(|| spec.sinks.delivered(&own)).flatten();
        let missing = Missing::of(recovered.as_ref(), keyed, delivered);
        let signs = replaced.signing.as_ref();
        let written = signs.map(|signs| written(&mut log, signs));
        let interval: Duration = spec.cuts.interval;
        let (recorder, keeper) = Recorder::start_with(
            log,
            spec.durability,
            Bounds::default(),
            spec.watermarks,
            interval,
            outside,
        )
        .map_err(wrong(&own))?;
        let rules = spec.rules.clone();
        let auditor = Auditor::new(recorder, &digest, rules, config.clone(), Arc::clone(&scrub));
        let journal = auditor.journal().clone();
        journal.note(Kind::Start, |detail| {
            if !config.is_empty() {
                detail.text("config", &config);
            }
            detail.text("durability", spec.durability.word());
            if let Some(missing) = &missing {
                missing.tell(detail);
            }
            detail.text("version", env!("CARGO_PKG_VERSION"));
        });
        if let (Some(signs), Some(Written::Not)) = (signs, written) {
            journal.note(Kind::Keys, |detail| signs.tell(detail));
        }
        if replaced.digests {
            journal.note(Kind::Keys, |detail| {
                detail.text("state", "replaced").text("use", "digests");
            });
        }
        // A sink that is new begins with this start.
        let first = recovered.map_or(0, |recovered| recovered.last.seq);
        let sinks = if keeps {
            spec.sinks.start(&own, first, &node, &scrub)?
        } else {
            Vec::new()
        };
        // Last of all: where this start ends before, or the note with it, the next one tells of it.
        if let (Some(signs), Some(Written::Durably)) = (signs, written) {
            told(directory, signs.now)?;
        }
        Ok(Self {
            auditor,
            _ending: Ending(journal.clone()),
            journal,
            _keeper: keeper,
            sinks,
            directory: keeps.then_some(own),
            key: public,
            recovered,
            replaced,
            missing,
            _caretaker: caretaker,
            _lock: lock,
        })
    }
}

impl Signs {
    /// What is noted of it.
    fn tell(&self, detail: &mut Object<'_>) {
        let before = self.before.map(|key| key.to_string());
        detail
            .maybe("before", before.as_deref())
            .text("key", &self.now.to_string())
            .text("state", "replaced")
            .text("use", "signing");
    }
}

/// Whether a note is in the log.
#[derive(Clone, Copy)]
enum Written {
    /// Not now.
    Not,
    /// It is, but a loss of power may take it.
    Barely,
    /// For good.
    Durably,
}

/// Writes at once that another key signs.
fn written(log: &mut Log, signs: &Signs) -> Written {
    let mut events = Events::default();
    let note = event(Kind::Keys, |detail| signs.tell(detail));
    handed(note, |note, ()| events.push(note.bytes(), None));
    if log.append(&events).is_err() {
        return Written::Not;
    }
    match synced(log) {
        Ok(()) => Written::Durably,
        Err(_) => Written::Barely,
    }
}

fn synced(log: &mut Log) -> io::Result<()> {
    let Some(syncing) = log.syncing() else {
        return Ok(());
    };
    let result = syncing.wait();
    log.synced(&syncing, &result)?;
    result
}

/// The name of this machine, without what JSON would escape.
pub fn node() -> String {
    let name = nix::unistd::gethostname().unwrap_or_default();
    let name = name.to_string_lossy();
    let plain = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '-' | '.' | '_');
    let name: String = name.chars().filter(plain).take(64).collect();
    if name.is_empty() {
        "unnamed".to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, fs, io::ErrorKind, sync::atomic::Ordering::Relaxed};

    use super::*;
    use crate::{
        audit::{
            chain::ChainPosition,
            log::{
                segments,
                testing::{Faulty, Shared},
                tests::records,
            },
            place::{DIGEST, KEY, PUBLIC},
            verify::{Fault, verify},
        },
        json::Json,
        protocol::UpstreamId,
    };

    /// Nothing is recorded here.
    #[derive(Debug)]
    struct Blank;

    impl Scrub for Blank {
        fn content(&self, _: &Json, _: Option<&UpstreamId>, _: Option<&str>) -> Json {
            Json::empty_object()
        }

        fn name<'a>(&self, _: &'a str) -> Cow<'a, str> {
            "".into()
        }

        fn id<'a>(&self, _: &'a str) -> Cow<'a, str> {
            "".into()
        }
    }

    fn try_open(directory: &Path) -> Result<Home, HomeError> {
        open_as(&AuditSpec::default(), directory)
    }

    fn open_as(spec: &AuditSpec, directory: &Path) -> Result<Home, HomeError> {
        let outside = Box::new(|_: &Signed| {});
        Home::open(
            spec,
            directory,
            "b",
            String::new(),
            Arc::new(Blank),
            outside,
        )
    }

    fn open(directory: &Path) -> Home {
        try_open(directory).unwrap()
    }

    #[test]
    fn a_second_process_writes_beside_the_first_and_with_the_same_keys() {
        let directory = tempfile::tempdir().unwrap();
        let first = open(directory.path());
        let second = open(directory.path());
        assert_eq!(first.directory.as_deref(), Some(directory.path()));
        assert_eq!(second.directory, Some(directory.path().join("beside-2")));
        assert_eq!(first.key.to_string(), second.key.to_string());
        drop(first);
        assert_eq!(
            open(directory.path()).directory.as_deref(),
            Some(directory.path())
        );
    }

    #[test]
    fn keys_are_their_owners_and_a_spoilt_one_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        drop(open(directory.path()));
        for name in [KEY, DIGEST] {
            let path = directory.path().join(name);
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
            let text = fs::read(&path).unwrap();
            fs::write(&path, "spoilt").unwrap();
            let opened = try_open(directory.path());
            assert!(matches!(opened, Err(HomeError::Key(_))), "{name}");
            fs::write(&path, text).unwrap();
        }
    }

    /// SECURITY 10
    #[test]
    fn a_start_refuses_a_key_that_everybody_may_read() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        drop(open(directory.path()));
        for name in [KEY, DIGEST] {
            let path = directory.path().join(name);
            let mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode));
            mode(0o644).unwrap();
            let opened = try_open(directory.path());
            assert!(matches!(opened, Err(HomeError::Exposed(_))), "{name}");
            mode(0o660).unwrap();
            drop(open(directory.path()));
        }
    }

    fn faults(directory: &Path, keys: &[&str]) -> Vec<Fault> {
        let keys = keys.iter().map(|key| VerifyingKey::parse(key).unwrap());
        let keys: Vec<_> = keys.collect();
        verify(directory, &keys, &[], |_| {}).unwrap().faults
    }

    /// SECURITY 10: two generations of audit keys.
    #[test]
    fn records_of_a_key_that_was_lost_or_exchanged_stay_provable_and_the_log_tells_of_it() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        let public = || fs::read_to_string(directory.join(PUBLIC)).unwrap();
        let first = open(directory);
        assert_eq!(first.replaced, Replaced::default());
        drop(first);
        let (of_first, kept) = (public(), fs::read(directory.join(KEY)).unwrap());
        fs::remove_file(directory.join(KEY)).unwrap();
        let second = open(directory);
        let signs = second.replaced.signing.unwrap();
        assert_eq!(signs.before.unwrap().to_string(), of_first.trim());
        assert_eq!((signs.now, second.replaced.digests), (second.key, false));
        drop(second);
        let both = public();
        let both: Vec<&str> = both.lines().collect();
        assert_eq!(both, [of_first.trim(), &signs.now.to_string()]);
        assert_eq!(faults(directory, &both), []);
        for one in both.iter().copied() {
            assert!(!faults(directory, &[one]).is_empty(), "{one}");
        }
        let told = format!(
            r#"{{"before":"{}","key":"{}","state":"replaced","use":"signing"}}"#,
            both[0], both[1]
        );
        let all = records(directory).join("\n");
        assert!(all.contains(&told), "{all}");
        // Exchanged for the one before: that is the newest then, and none is named twice.
        drop(open(directory));
        assert_eq!(public().lines().collect::<Vec<_>>(), both);
        fs::write(directory.join(KEY), kept).unwrap();
        let third = open(directory);
        assert!(third.replaced.signing.is_some());
        drop(third);
        assert_eq!(public().lines().collect::<Vec<_>>(), [both[1], both[0]]);
        assert_eq!(faults(directory, &both), []);
        // Without either file nobody knows which it was.
        fs::remove_file(directory.join(KEY)).unwrap();
        fs::remove_file(directory.join(PUBLIC)).unwrap();
        let fourth = open(directory);
        let signs = fourth.replaced.signing.unwrap();
        assert_eq!((signs.now, signs.before), (fourth.key, None));
    }

    #[test]
    fn that_another_key_signs_is_told_by_the_next_start_where_one_ends_too_early() {
        for without in [&[KEY][..], &[KEY, PUBLIC]] {
            let home = tempfile::tempdir().unwrap();
            let directory = home.path();
            let first = open(directory).key;
            for name in without {
                fs::remove_file(directory.join(name)).unwrap();
            }
            // It ends before it records anything.
            let digest = directory.join(DIGEST);
            let digits = fs::read(&digest).unwrap();
            fs::write(&digest, "spoilt").unwrap();
            assert!(matches!(try_open(directory), Err(HomeError::Key(_))));
            fs::write(&digest, digits).unwrap();
            // It cannot write, and is gone with all that waits.
            let disk = Arc::new(Faulty::default());
            disk.full.store(true, Relaxed);
            let spec = AuditSpec {
                storage: Arc::new(Shared(disk)),
                ..AuditSpec::default()
            };
            let full = open_as(&spec, directory).unwrap();
            assert!(full.replaced.signing.is_some());
            drop(full);
            let all = || records(directory).join("\n");
            let note = r#""state":"replaced","use":"signing""#;
            assert!(!all().contains(note), "{}", all());
            let told = open(directory);
            let signs = told.replaced.signing.unwrap();
            let known = without.len() == 1;
            assert_eq!(signs.before, known.then_some(first));
            drop(told);
            assert!(all().contains(note), "{}", all());
            let public = fs::read_to_string(directory.join(PUBLIC)).unwrap();
            let mut expected = Vec::new();
            expected.extend(known.then(|| first.to_string()));
            expected.push(signs.now.to_string());
            assert_eq!(public.lines().collect::<Vec<_>>(), expected);
            assert_eq!(open(directory).replaced, Replaced::default());
        }
    }

    #[test]
    fn a_new_key_of_digests_beside_records_is_told_of_without_being_told() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        drop(open(directory));
        fs::remove_file(directory.join(DIGEST)).unwrap();
        let second = open(directory);
        assert!(second.replaced.digests && second.replaced.signing.is_none());
        drop(second);
        let all = records(directory).join("\n");
        assert!(
            all.contains(r#"{"state":"replaced","use":"digests"}"#),
            "{all}"
        );
        let key = fs::read_to_string(directory.join(DIGEST)).unwrap();
        assert!(!all.contains(key.trim()), "{all}");
        assert!(!open(directory).replaced.digests);
    }

    /// SECURITY AUD-3: a chain that begins anew is whole, and so is one whose end was removed.
    #[test]
    fn records_that_a_key_or_a_sink_knows_of_and_that_are_gone_are_told_of_by_the_next_start() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path();
        let first = open(directory);
        assert_eq!(first.missing, None);
        // The first that writes beside another has nothing to miss.
        assert_eq!(open(directory).missing, None);
        drop(first);
        assert_eq!(open(directory).missing, None);
        for segment in segments(directory).unwrap() {
            fs::remove_file(segment.path).unwrap();
        }
        let anew = open(directory);
        let missing = Missing {
            last: 0,
            known: None,
        };
        assert_eq!(anew.missing, Some(missing));
        let key = anew.key;
        drop(anew);
        let report = verify(directory, &[key], &[], |_| {}).unwrap();
        assert_eq!((report.missing, report.faults), (vec![2], Vec::new()));
        let all = records(directory).join("\n");
        assert!(all.contains(r#""missing":{"last":0},"version""#), "{all}");
        assert_eq!(open(directory).missing, None);
        // Also where what tells of the start before is taken away in part.
        for name in [DIGEST, PUBLIC] {
            for segment in segments(directory).unwrap() {
                fs::remove_file(segment.path).unwrap();
            }
            fs::remove_file(directory.join(name)).unwrap();
            assert_eq!(open(directory).missing, Some(missing), "{name}");
        }
        // A key that somebody put here is no start.
        let brought = tempfile::tempdir().unwrap();
        fs::copy(directory.join(KEY), brought.path().join(KEY)).unwrap();
        assert_eq!(open(brought.path()).missing, None);

        let found = |seq| Recovered {
            last: ChainPosition {
                seq,
                ..ChainPosition::START
            },
            cut: 0,
        };
        let told = |seq, delivered| Missing::of(Some(&found(seq)), true, delivered);
        assert_eq!((told(7, Some(7)), told(7, None)), (None, None));
        let (last, known) = (7, Some(9));
        assert_eq!(told(7, Some(9)), Some(Missing { last, known }));
        let last = 0;
        assert_eq!(
            Missing::of(None, false, known),
            Some(Missing { last, known })
        );
        assert_eq!(Missing::of(None, false, None), None);
    }

    #[test]
    fn whoever_cannot_begin_for_want_of_room_is_told_to_make_some() {
        let told = |cause: ErrorKind| {
            let (path, cause) = ("key.pem".into(), cause.into());
            HomeError::File { path, cause }.to_string()
        };
        for cause in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            assert!(
                told(cause).contains("; make room there, "),
                "{}",
                told(cause)
            );
        }
        let told = told(ErrorKind::PermissionDenied);
        assert!(
            told.ends_with("; set `audit.dir` to a directory that this user may write to, or write `audit: off`"),
            "{told}"
        );
    }

    #[test]
    fn the_users_state_is_where_records_go_if_nothing_is_said() {
        let of = |vars: &'static [(&str, &str)]| {
            default_directory(&move |name| {
                let found = vars.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let path = |text: &str| PathBuf::from(text);
        assert_eq!(
            of(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]),
            path("/s/usher/audit")
        );
        assert_eq!(of(&[("HOME", "/h")]), path("/h/.local/state/usher/audit"));
        assert_eq!(of(&[("XDG_STATE_HOME", "s")]), path("/var/lib/usher/audit"));
    }
}

//! Files that somebody removes, and what is kept while nothing can be written.

use super::*;
use crate::logged::Logged;

/// SECURITY AUD-1, AUD-2: nobody goes on because of a record in a file that somebody removed.
#[test]
fn what_is_put_after_the_file_was_removed_is_found_in_the_next_one() {
    for durability in [Durability::Strict, Durability::Kernel, Durability::Async] {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faulty::default());
        let (recorder, keeper) = start(&disk, directory.path(), durability, Bounds::default());
        put(&recorder, 0).unwrap();
        let first = segments(directory.path()).unwrap().remove(0).path;
        std::fs::remove_file(&first).unwrap();
        put(&recorder, 1).unwrap();
        let there = || {
            let left = segments(directory.path()).unwrap();
            let text = left
                .last()
                .map(|it| std::fs::read_to_string(&it.path).unwrap());
            text.is_some_and(|text| text.contains(r#""n":1"#))
        };
        while durability != Durability::Strict && !there() {
            thread::yield_now();
        }
        assert!(there(), "{durability:?}");
        assert!(recorder.is_available());
        drop(keeper);
    }
}

/// SECURITY AUD-2: nobody has to call for it to be noticed.
#[test]
fn where_the_whole_directory_is_gone_nothing_is_let_in_until_it_is_there_again() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("audit");
    let disk = Arc::new(Faulty::default());
    let bounds = Bounds::default();
    let often = Duration::from_millis(500);
    let (recorder, keeper) = start_every(often, &disk, &directory, Durability::Kernel, bounds);
    put(&recorder, 0).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    while recorder.is_available() {
        thread::yield_now();
    }
    assert_eq!(put(&recorder, 1), Err(Unavailable));
    std::fs::create_dir(&directory).unwrap();
    while !recorder.is_available() {
        thread::yield_now();
    }
    put(&recorder, 2).unwrap();
    drop(keeper);
    let last = segments(&directory).unwrap().pop().unwrap();
    let text = std::fs::read_to_string(last.path).unwrap();
    assert!(
        text.contains(r#""n":1"#) && text.contains(r#""n":2"#),
        "{text}"
    );
}

/// SECURITY 8: whoever is refused a record knows that it will not be there; of the others each is.
#[test]
fn what_is_kept_while_writing_fails_is_told_from_what_is_not() {
    for durability in [Durability::Strict, Durability::Kernel] {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faulty::default());
        let (recorder, keeper) = start(&disk, directory.path(), durability, few(4));
        disk.full.store(true, Relaxed);
        let (mut kept, mut refused) = (Vec::new(), 0);
        for n in 0..8 {
            match recorder.put(&happened(n), None, Weight::Permit) {
                Ok(safe) => {
                    assert_eq!(block(safe), Err(Unavailable), "{durability:?} {n}");
                    kept.push(n);
                }
                Err(Unavailable) => refused += 1,
            }
        }
        assert_eq!((kept.len(), refused), (4, 4), "{durability:?}");
        disk.full.store(false, Relaxed);
        drop(keeper);
        assert_eq!(calls(directory.path()), kept, "{durability:?}");
    }
}

/// SECURITY AUD-2: no gap record tells of what is lost at the end.
#[test]
fn what_the_disk_does_not_take_by_the_end_is_counted_in_the_log() {
    for durability in [Durability::Strict, Durability::Kernel, Durability::Async] {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Faulty::default());
        let (recorder, keeper) = start(&disk, directory.path(), durability, few(2));
        disk.full.store(true, Relaxed);
        for n in 0..5 {
            recorder.note(&happened(n), None, Weight::Refusal);
        }
        let logged = Logged::new();
        drop(keeper);
        let text = logged.text();
        let told = text.lines().find(|line| line.contains("the gateway ends"));
        let told = told.unwrap_or_else(|| panic!("{durability:?}: {text}"));
        assert!(told.contains("ERROR"), "{told}");
        assert!(told.contains("unwritten=2 left_out=3"), "{told}");
    }
    let directory = tempfile::tempdir().unwrap();
    let bounds = Bounds::default();
    let (recorder, keeper) = start(
        &Arc::default(),
        directory.path(),
        Durability::Kernel,
        bounds,
    );
    recorder.note(&happened(0), None, Weight::Refusal);
    let logged = Logged::new();
    drop(keeper);
    assert!(
        !logged.text().contains("the gateway ends"),
        "{}",
        logged.text()
    );
}

//! How much memory the system lets this process have.

use std::{fs, path::Path};

use crate::memory::UNBOUNDED;

/// Where control groups are, and which is ours.
const GROUPS: &str = "/sys/fs/cgroup";
const OURS: &str = "/proc/self/cgroup";

/// Three quarters of the least that our control group or one above it may have, else 2 GiB.
pub(super) fn budget() -> u64 {
    let ours = fs::read_to_string(OURS).unwrap_or_default();
    of_groups(Path::new(GROUPS), &ours)
}

/// The same, of groups at `root`, where `ours` says which is ours.
fn of_groups(root: &Path, ours: &str) -> u64 {
    let limits = ours.lines().filter_map(|line| {
        // Number, controllers, path; the unified hierarchy has no controllers.
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        if controllers.is_empty() {
            return least(root, path, "memory.max");
        }
        let memory = controllers.split(',').any(|one| one == "memory");
        memory
            .then(|| least(&root.join("memory"), path, "memory.limit_in_bytes"))
            .flatten()
    });
    // The first generation says a number beyond any memory where there is no limit.
    let limit = limits.min().filter(|limit| *limit < 1 << 62);
    limit.map_or(UNBOUNDED, |limit| limit / 4 * 3)
}

/// The least limit from the group at `path` upwards. In a container the path may be that outside of it: the root is ours then.
fn least(root: &Path, path: &str, file: &str) -> Option<u64> {
    let path = Path::new(path.trim_start_matches('/'));
    let limit = |group: &Path| {
        let text = fs::read_to_string(root.join(group).join(file)).ok()?;
        text.trim().parse().ok()
    };
    path.ancestors().filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_three_quarters_of_the_least_limit_on_the_way_to_our_group() {
        const GIB: u64 = 1 << 30;
        let root = tempfile::tempdir().unwrap();
        let set = |group: &str, file: &str, text: &str| {
            let group = root.path().join(group);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join(file), text).unwrap();
        };
        let found = |ours: &str| of_groups(root.path(), ours);
        assert_eq!(found(""), 2 * GIB, "no groups");
        assert_eq!(found("0::/pod/box\n"), 2 * GIB, "none of ours");
        set("pod/box", "memory.max", "max\n");
        assert_eq!(found("0::/pod/box\n"), 2 * GIB, "no limit");
        set("pod", "memory.max", "4294967296\n");
        assert_eq!(found("0::/pod/box\n"), 3 * GIB, "one above");
        set("pod/box", "memory.max", "1073741824\n");
        assert_eq!(found("0::/pod/box\n"), GIB / 4 * 3);
        assert_eq!(found("0::/elsewhere\n"), 2 * GIB);
        // In a container the root is its own group, whatever the path says.
        set("", "memory.max", "536870912\n");
        assert_eq!(found("0::/elsewhere\n"), GIB / 8 * 3);
        // The first generation, where the largest number there is means none.
        let first = "5:cpu,cpuacct:/x\n4:memory:/x\n";
        assert_eq!(found(first), 2 * GIB);
        set("memory/x", "memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(found(first), 2 * GIB);
        set("memory/x", "memory.limit_in_bytes", "268435456\n");
        assert_eq!(found(first), GIB / 16 * 3);
    }
}

//! What is of a project, of several programs at once, or beside a server: taken over as those programs mean it.

use secrecy::ExposeSecret;

use super::{
    tests::{endpoint, everything_set, imported},
    *,
};
use crate::{
    config::{
        load,
        tests::{Files, vars},
    },
    upstream::spec::Endpoint,
};

/// Whoever uses two programs in one project may have both in one file.
#[test]
fn servers_under_each_key_of_one_file_are_taken() {
    let files = Files::new();
    let path = files.add(
        "mcp.json",
        r#"{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}},"servers":{"c":{"command":"z"},"a":{"command":"x"}},
           "mcp":{"servers":{"b":{"command":"w"}}}}"#,
    );
    let (plan, notes) = load_mcp_json(&path, &vars).expect("loads");
    let keys: Vec<&str> = plan.upstreams.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(keys, ["a", "b", "c", "b-2"]);
    assert_eq!(
        notes,
        [
            "`a` is there twice and was taken once",
            "`b` would be `b` like another before it; it is `b-2` here"
        ]
    );
}

#[test]
fn a_client_that_people_log_in_by_is_taken_over_and_its_secret_hidden() {
    let files = Files::new();
    let path = files.add(
        "mcp.json",
        r#"{"mcpServers":{"linear":{"url":"https://mcp.linear.app/mcp","auth":
           {"CLIENT_ID":"${env:CID}","CLIENT_SECRET":"shhMARKER","scopes":["read","write"],"REALM":"x"}}}}"#,
    );
    let import = imported(&files, &["mcp.json"]);
    let expected = r#"
    auth:
      authorization_code:
        client_id: "${env:CID}"
        client_secret: "${env:LINEAR_CLIENT_SECRET}"
        scopes: [read, write]
"#;
    assert!(import.yaml.ends_with(expected), "{}", import.yaml);
    assert_eq!(
        import.notes,
        ["`linear.auth.REALM` has no counterpart here and was left out"]
    );
    files.add("usher.yaml", &import.yaml);
    let imported = load(&files.path("usher.yaml"), &everything_set).expect("loads");
    let (served, _) = load_mcp_json(&path, &everything_set).expect("loads");
    for plan in [imported, served] {
        assert_eq!(plan.connect.accounts.len(), 1);
    }
}

#[test]
fn programs_of_a_project_start_in_it_and_those_of_a_person_where_usher_does() {
    for (name, of_project) in [
        (".mcp.json", true),
        (".cursor/mcp.json", true),
        (".vscode/mcp.json", true),
        ("mcp.json", false),
        ("claude_desktop_config.json", false),
    ] {
        let files = Files::new();
        for folder in [".cursor", ".vscode", "sub"] {
            std::fs::create_dir(files.path(folder)).unwrap();
        }
        let path = files.add(
            name,
            r#"{"mcpServers":{"a":{"command":"./server"},"b":{"command":"x","cwd":"sub"},"c":{"command":"x","cwd":"/"}}}"#,
        );
        let here = files.path("");
        let here = here.to_str().unwrap().trim_end_matches('/');
        let import = imported(&files, &[name]);
        let (served, _) = load_mcp_json(&path, &vars).unwrap();
        files.add("usher.yaml", &import.yaml);
        for plan in [served, files.plan()] {
            let cwd = |key: &str| match endpoint(&plan, key) {
                Endpoint::Stdio(stdio) => stdio.cwd.clone(),
                Endpoint::Http(_) => panic!("a program"),
            };
            assert_eq!(cwd("a"), of_project.then(|| PathBuf::from(here)), "{name}");
            assert_eq!(cwd("b"), Some(files.path("sub")), "{name}");
            assert_eq!(cwd("c"), Some("/".into()), "{name}");
        }
        // What lies in somebody's own directory is of no project.
        let home = here.to_owned();
        let at_home = |name: &str| (name == "HOME").then(|| home.clone());
        let (plan, _) = load_mcp_json(&path, &at_home).unwrap();
        let Endpoint::Stdio(stdio) = endpoint(&plan, "a") else {
            panic!("a program");
        };
        assert_eq!(stdio.cwd, None, "{name}");
    }
}

#[test]
fn the_variables_of_a_file_beside_it_are_imported_as_references_and_served_as_they_are() {
    let files = Files::new();
    std::fs::create_dir(files.path(".vscode")).unwrap();
    files.add(
        ".env",
        "LEVEL=envMARKER\nexport API_KEY='keyMARKER'\n# c\nOWN=theirs\n",
    );
    let path = files.add(
        ".vscode/mcp.json",
        r#"{"servers":{"a":{"command":"x","env":{"OWN":"mine"},"envFile":"${workspaceFolder}/.env"},
            "b":{"command":"x","envFile":"gone.env"}}}"#,
    );
    let import = imported(&files, &[".vscode/mcp.json"]);
    assert!(!import.yaml.contains("MARKER"), "{}", import.yaml);
    let env = "    env:\n      OWN: mine\n      LEVEL: \"${env:LEVEL}\"\n      API_KEY: \"${env:API_KEY}\"\n";
    assert!(import.yaml.contains(env), "{}", import.yaml);
    let names: Vec<&str> = import.exports.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["LEVEL", "API_KEY"]);
    let gone = files.path("gone.env");
    assert_eq!(
        import.notes[0],
        "`a.envFile` is not read any more: it sets `LEVEL`, `API_KEY`"
    );
    let not_known = format!(
        "`b.envFile` was left out, and nobody knows which variables it sets: {}: ",
        gone.display()
    );
    assert!(
        import.notes[1].starts_with(&not_known),
        "{:?}",
        import.notes
    );

    let (plan, notes) = load_mcp_json(&path, &vars).expect("loads");
    let Endpoint::Stdio(stdio) = endpoint(&plan, "a") else {
        panic!("a program");
    };
    let env = |name: &str| stdio.env[name].expose_secret().to_owned();
    assert_eq!(
        (env("LEVEL"), env("API_KEY"), env("OWN")),
        ("envMARKER".into(), "keyMARKER".into(), "mine".into())
    );
    assert_eq!(notes.len(), 1, "{notes:?}");
}

/// The file itself may look like a reference, and is none: what stands in it is meant for a program.
#[test]
fn what_looks_like_a_reference_in_a_file_of_variables_is_its_text_or_of_that_file() {
    let files = Files::new();
    files.add(
        ".env",
        "HOST=db\nURL=postgres://u:pwMARKER@${HOST}/x\nPASSWORD=ab${cdMARKER\nTOKEN=${env:TOKEN}MARKER\nKEY='${HOST}MARKER'\n\
         HEADER=Bearer headerMARKER\nLATE=\"${LATER}MARKER\"\nLATER=1\n",
    );
    let path = files.add(
        "mcp.json",
        r#"{"mcpServers":{"a":{"command":"x","envFile":".env"}}}"#,
    );
    let (plan, _) = load_mcp_json(&path, &vars).expect("loads");
    let Endpoint::Stdio(stdio) = endpoint(&plan, "a") else {
        panic!("a program");
    };
    for (name, value) in [
        ("HOST", "db"),
        ("URL", "postgres://u:pwMARKER@db/x"),
        ("PASSWORD", "ab${cdMARKER"),
        ("TOKEN", "${env:TOKEN}MARKER"),
        ("KEY", "${HOST}MARKER"),
        ("HEADER", "Bearer headerMARKER"),
        ("LATE", "${LATER}MARKER"),
    ] {
        assert_eq!(stdio.env[name].expose_secret(), value, "{name}");
    }

    let import = imported(&files, &["mcp.json"]);
    assert!(!import.yaml.contains("MARKER"), "{}", import.yaml);
    for export in ["URL", "PASSWORD", "TOKEN", "KEY", "HEADER", "LATE"] {
        // The whole of it: that file is what is exported as a rule.
        let line = format!("      {export}: \"${{env:{export}}}\"\n");
        assert!(import.yaml.contains(&line), "{export}: {}", import.yaml);
    }
    assert!(import.exports.iter().all(|export| !export.present));
}

#[test]
fn what_is_in_a_projects_file_and_elsewhere_is_taken_once_unless_its_project_is_what_it_is_about() {
    let files = Files::new();
    for folder in ["p", "q", "p/dist"] {
        std::fs::create_dir(files.path(folder)).unwrap();
    }
    files.add("p/dist/main.js", "");
    let servers = r#"{"mcpServers":{"files":{"command":"npx","args":["-y","@scope/files"]},"own":{"command":"node","args":["dist/main.js"]},
                      "here":{"command":"./server"}}}"#;
    for name in ["p/.mcp.json", "q/.mcp.json", "mcp.json"] {
        files.add(name, servers);
    }
    for (names, keys) in [
        (
            &["p/.mcp.json", "mcp.json"][..],
            &["files", "own", "here", "own-2", "here-2"][..],
        ),
        (
            &["mcp.json", "p/.mcp.json"],
            &["files", "own", "here", "own-2", "here-2"],
        ),
        // Which of two projects it is for is known of neither.
        (
            &["p/.mcp.json", "q/.mcp.json"],
            &["files", "own", "here", "files-2", "own-2", "here-2"],
        ),
        (&["p/.mcp.json", "p/.mcp.json"], &["files", "own", "here"]),
    ] {
        let import = imported(&files, names);
        files.add("usher.yaml", &import.yaml);
        let plan = files.plan();
        let taken: Vec<&str> = plan.upstreams.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(taken, keys, "{names:?}");
    }
}

#[test]
fn somebodys_own_directory_is_that_however_it_is_written() {
    let files = Files::new();
    for folder in [".cursor", "sub"] {
        std::fs::create_dir(files.path(folder)).unwrap();
    }
    files.add(
        ".cursor/mcp.json",
        r#"{"mcpServers":{"a":{"command":"x"}}}"#,
    );
    let home = files.path("").display().to_string();
    let at_home = |name: &str| (name == "HOME").then(|| home.clone());
    let path = files.path("sub/../.cursor/mcp.json");
    let (plan, _) = load_mcp_json(&path, &at_home).unwrap();
    let Endpoint::Stdio(stdio) = endpoint(&plan, "a") else {
        panic!("a program");
    };
    assert_eq!(stdio.cwd, None);
}

#[test]
fn a_directory_that_a_variable_names_counts_from_where_one_that_is_written_does() {
    let files = Files::new();
    for folder in [".vscode", "sub"] {
        std::fs::create_dir(files.path(folder)).unwrap();
    }
    let path = files.add(
        ".vscode/mcp.json",
        r#"{"servers":{"a":{"command":"x","cwd":"${env:SUB}"}}}"#,
    );
    let sub = files.path("sub");
    let whole = sub.display().to_string();
    let joined = format!("cwd: \"{}/${{env:SUB}}\"", files.path("").display());
    let joined = joined.replace("//", "/");
    for (set, written) in [
        (Some("sub"), &*joined),
        (Some(&*whole), "cwd: \"${env:SUB}\""),
        (None, &joined),
    ] {
        let vars = |name: &str| set.filter(|_| name == "SUB").map(str::to_owned);
        let import = import(std::slice::from_ref(&path), &vars).expect("imports");
        assert!(import.yaml.contains(written), "{set:?}: {}", import.yaml);
        let told = "`a.cwd` counts from ";
        let told = import.notes.iter().any(|note| note.starts_with(told));
        assert_eq!(told, set.is_none(), "{:?}", import.notes);
        if set.is_some() {
            let (plan, _) = load_mcp_json(&path, &vars).expect("loads");
            let Endpoint::Stdio(stdio) = endpoint(&plan, "a") else {
                panic!("a program");
            };
            assert_eq!(stdio.cwd.as_ref(), Some(&sub), "{set:?}");
        }
    }
}

// Is Usher as conformant as what is behind it? Every server scenario of the conformance suite runs directly against the
// fixture and once more through Usher, in both eras. A scenario may only be worse through Usher if differences.txt names it
// with a reason, and only in the checks named there, if it names any; an entry whose scenario is not worse is stale. Either is a
// failure, and so is a scored scenario which fails directly, since it would compare nothing.
//
// Some scenarios give an answer very little time. One that fails directly, or that fails the comparison, is therefore run again
// by itself on both sides, up to twice more; the first run that is as it should be counts, and the output says that it was run
// again. A stale entry is not tried again: it must be worse every time.
//
//   run.mjs                   starts the fixture and target/debug/usher in front of it
//   run.mjs --through URL     compares with that endpoint instead
//   run.mjs --direct URL      takes that endpoint for the fixture (with --through)
//   run.mjs --differences F   takes that list instead of differences.txt
//   run.mjs --revision REV    only that revision; may be given several times
//
// The last line is `N passed, N failed`, over scenarios.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";

const here = import.meta.dirname;
const target = resolve(process.env.CARGO_TARGET_DIR ?? join(here, "../../target"), "debug");
const suite = join(here, "../peers/node_modules/@modelcontextprotocol/conformance");
const { values: options } = parseArgs({
  options: {
    through: { type: "string" },
    direct: { type: "string" },
    differences: { type: "string", default: join(here, "differences.txt") },
    revision: { type: "string", multiple: true, default: ["2025-11-25", "2026-07-28"] },
  },
});

// How often a scenario is run before it counts as failed.
const RUNS = 3;

const scratch = await mkdtemp(join(tmpdir(), "usher-conformance-"));
const children = [];
let failed = 1;
try {
  failed = await compareAll();
} catch (error) {
  console.error(String(error));
} finally {
  for (const child of children) child.kill("SIGKILL");
  await rm(scratch, { recursive: true, force: true });
}
process.exit(failed === 0 ? 0 : 1);

async function compareAll() {
  const direct = options.direct ?? (await startFixture());
  const through = options.through ?? (await startUsher(direct));
  const listed = await readDifferences(options.differences);
  const verdicts = [];
  for (const revision of options.revision) {
    const scored = await scoredScenarios(revision);
    console.log(`${revision}: directly ...`);
    const there = await runSuite(direct, revision);
    console.log(`${revision}: through ...`);
    const here = await runSuite(through, revision);
    for (const scenario of new Set([...there.keys(), ...here.keys(), ...scored])) {
      const entry = listed.get(`${revision} ${scenario}`);
      listed.delete(`${revision} ${scenario}`);
      let verdict = judge(there.get(scenario), here.get(scenario), scored.has(scenario), entry);
      for (let run = 2; verdict.again && run <= RUNS; run++) {
        console.log(`  again ${scenario} (run ${run} of at most ${RUNS}): ${verdict.note}`);
        there.set(scenario, await runScenario(direct, revision, scenario));
        here.set(scenario, await runScenario(through, revision, scenario));
        verdict = judge(there.get(scenario), here.get(scenario), scored.has(scenario), entry);
        if (!verdict.again) verdict.note = `${verdict.note ?? "as it should be"} (in run ${run})`;
      }
      verdicts.push(verdict.ok);
      if (verdict.note) console.log(`  ${verdict.ok ? "ok  " : "FAIL"} ${scenario}: ${verdict.note}`);
    }
    console.log(`${revision}: ${passing(there)} of ${there.size} scenarios pass directly, ${passing(here)} of ${here.size} through`);
  }
  for (const entry of listed.keys()) {
    if (!options.revision.includes(entry.split(" ")[0])) continue;
    verdicts.push(false);
    console.log(`  FAIL ${entry}: is listed as a difference, and no such scenario ran`);
  }
  const failed = verdicts.filter((ok) => !ok).length;
  console.log(`${verdicts.length - failed} passed, ${failed} failed`);
  return failed;
}

// Compares one scenario's checks. "Worse" is a check that succeeded directly and did not through, so that a check which
// quietly turned into a warning or was skipped counts as well. `again` says that another run may tell otherwise.
function judge(there, here, scored, entry) {
  if (!there) return { ok: false, again: true, note: "did not run directly" };
  const broken = there.filter(isBad);
  if (broken.length > 0) {
    return { ok: !scored, again: true, note: `fails directly already (${describe(broken[0])})` };
  }
  const lost = worse(there, here ?? []);
  if (lost.size === 0) {
    return entry ? { ok: false, note: `is listed as a difference and passes (stale: ${entry.reason})` } : { ok: true };
  }
  const unlisted = entry?.checks ? [...lost.keys()].filter((id) => !entry.checks.has(id)) : [];
  if (entry && unlisted.length === 0) return { ok: true, note: `differs as listed: ${entry.reason}` };
  const notes = (entry ? unlisted : [...lost.keys()]).map((id) => lost.get(id));
  return { ok: false, again: true, note: `passes directly, not through:\n         ${notes.join("\n         ")}` };
}

function isBad(check) {
  return ["FAILURE", "WARNING"].includes(check.status);
}

// What is worse through Usher: a line about each check, by its id.
function worse(there, here) {
  const successes = (checks, id) => checks.filter((check) => check.id === id && check.status === "SUCCESS").length;
  const missing = there.map((check) => check.id).filter((id) => successes(here, id) < successes(there, id));
  const lost = new Map(missing.map((id) => [id, `${id}: succeeds less often than directly`]));
  for (const check of here.filter(isBad)) lost.set(check.id, describe(check));
  return lost;
}

function describe(check) {
  return `${check.id} ${check.status}: ${String(check.errorMessage ?? check.description).slice(0, 400)}`;
}

function passing(scenarios) {
  return [...scenarios.values()].filter((checks) => !checks.some(isBad)).length;
}

// Runs all scenarios of a revision once; the checks of each by its name.
async function runSuite(url, revision) {
  return await runCommand(url, ["--requirements", revision]);
}

// Runs one scenario once; its checks. Forced, since scenarios of extensions belong to no revision.
async function runScenario(url, revision, scenario) {
  const scenarios = await runCommand(url, ["--scenario", scenario, "--spec-version", revision, "--force"]).catch(() => new Map());
  const checks = scenarios.get(scenario) ?? [];
  return checks.length > 0 ? checks : [notRun(scenario)];
}

// The suite's own exit code says less than the checks do.
async function runCommand(url, what) {
  const results = await mkdtemp(join(scratch, "results-"));
  const command = [join(suite, "dist/index.js"), "server", "--url", url, ...what, "--output-dir", results];
  const log = await new Promise((done) => {
    execFile(process.execPath, command, { timeout: 300_000, maxBuffer: 1 << 28 }, (_, out, err) => done(out + err));
  });
  const scenarios = new Map();
  for (const folder of await readdir(results)) {
    const name = folder.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, "");
    scenarios.set(name, JSON.parse(await readFile(join(results, folder, "checks.json"), "utf8").catch(() => "[]")));
  }
  // A scenario which threw left an empty folder or none; the summary has it in either case.
  for (const [, name] of log.matchAll(/^✗ (\S+):/gm)) {
    if (!(scenarios.get(name) ?? []).some(isBad)) {
      scenarios.set(name, [notRun(name)]);
    }
  }
  if (scenarios.size === 0) throw new Error(`the suite ran nothing:\n${log.slice(-2000)}`);
  return scenarios;
}

function notRun(scenario) {
  return { id: scenario, status: "FAILURE", errorMessage: "the scenario could not be run" };
}

// The scenarios the revision requires of a server, from the suite's own list.
async function scoredScenarios(revision) {
  const text = await readFile(join(suite, "requirements", `${revision}.yaml`), "utf8");
  const section = text.match(/^server:\n((?:  - .*\n|\n)*)/m);
  if (!section) throw new Error(`no server section in the requirements of ${revision}`);
  return new Set(section[1].match(/[a-z0-9-]+$/gm));
}

async function readDifferences(file) {
  const lines = (await readFile(file, "utf8")).split("\n").filter((line) => line.trim() && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const [, scenario, checks, reason] = line.match(/^(\S+ \S+) (?:\[(.+?)\] )?([^[].*)$/) ?? [];
      if (!reason) throw new Error(`${file}: "${line}" is not as the comment there says`);
      return [scenario, { checks: checks && new Set(checks.split(" ")), reason }];
    }),
  );
}

async function startFixture() {
  const child = start(join(target, "examples/fixture"), ["--listen", "127.0.0.1:0"]);
  const [line] = await Promise.race([once(createInterface(child.stdout), "line"), child.gone]);
  return JSON.parse(line).url;
}

// Usher as a transparent gateway in front of one upstream, ready once it lists as many tools as that.
async function startUsher(upstream) {
  const port = await freePort();
  const file = join(scratch, "usher.yaml");
  const upstreams = { fixture: { url: upstream, prefix: "" } };
  // JSON is YAML.
  await writeFile(file, JSON.stringify({ listen: { address: `127.0.0.1:${port}` }, upstreams }));
  const child = start(join(target, "usher"), ["serve", "-c", file]);
  const url = `http://127.0.0.1:${port}/mcp`;
  const expected = await toolCount(upstream);
  const ready = async () => {
    for (const end = Date.now() + 30_000; Date.now() < end; await wait(50)) {
      if ((await toolCount(url).catch(() => 0)) === expected) return;
    }
    throw new Error(`usher did not list the fixture's ${expected} tools within 30 s`);
  };
  await Promise.race([ready(), child.gone]);
  return url;
}

async function toolCount(url) {
  const revision = "2026-07-28";
  const meta = { protocolVersion: revision, clientCapabilities: {}, clientInfo: { name: "conformance", version: "0" } };
  const _meta = Object.fromEntries(Object.entries(meta).map(([key, value]) => [`io.modelcontextprotocol/${key}`, value]));
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": revision,
      "mcp-method": "tools/list",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta } }),
  });
  const text = await response.text();
  const json = text.match(/^data: ?(\{.*)$/m)?.[1] ?? text;
  return JSON.parse(json).result.tools.length;
}

function start(command, args) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const ended = ([code, signal]) => Promise.reject(new Error(`${command} ended with ${code ?? signal}`));
  child.gone = once(child, "exit").then(ended);
  child.gone.catch(() => {}); // whoever does not wait for it does not care
  return child;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

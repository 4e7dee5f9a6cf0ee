// The reference servers of the Model Context Protocol, as people install them from npm, asked by our client.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';

const run = promisify(execFile);
const PROBE = join(dirname(process.env.CHIMERE_BINARY), 'mcp_probe');
const folder = mkdtempSync(join(tmpdir(), 'chimere-mcp-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const serverFile = (name) => `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`;
const callArguments = (calls) => calls.flatMap(([tool, given]) => ['--call', tool, JSON.stringify(given)]);

// What the probe saw of a server that it started, or that listens at a URL.
async function probe(target, calls) {
  const { stdout } = await run(PROBE, [...callArguments(calls), ...target], { timeout: 120_000, maxBuffer: 1 << 26 });
  const seen = JSON.parse(stdout);
  assert.equal(seen.problem, '');
  assert.ok(seen.results.every((result) => result.is_untrusted || result.is_error));
  return seen;
}
const started = (name, ...more) => ['--', process.execPath, serverFile(name), ...more];

// Calls of `everything`, which has one tool for each thing that the protocol can do.
const EVERYTHING = [
  ['echo', { message: 'caffè' }],
  ['get-sum', { a: 19, b: 23 }],
  ['get-tiny-image', {}],
  ['get-structured-content', { location: 'New York' }],
  ['get-resource-links', { count: 2 }],
  ['get-resource-reference', { resourceType: 'Text', resourceId: 1 }],
  ['trigger-long-running-operation', { duration: 0.2, steps: 2 }],
  ['get-env', {}],
  ['get-sum', { a: 'nineteen' }],
];

function checkEverything(seen) {
  const [echo, sum, image, structured, links, reference, long, environment, wrong] = seen.results;
  assert.equal(echo.text, 'Echo: caffè');
  assert.match(sum.text, /\b42\b/);
  assert.match(image.text, /\[image: image\/png, \d+ bytes\]/);
  assert.equal(typeof JSON.parse(structured.text).temperature, 'number');
  assert.match(links.text, /\[link: .*demo:\/\/resource/);
  assert.match(reference.text, /\[resource: demo:\/\/resource[^\]]*\]\n/);
  assert.match(long.text, /completed/i);
  assert.ok(!environment.text.includes('CHIMERE_BINARY'));
  assert.ok(wrong.is_error);
  assert.ok(seen.results.slice(0, -1).every((result) => !result.is_error));
}

test('everything, by its pipes', async () => {
  const seen = await probe(started('everything'), EVERYTHING);
  assert.ok(seen.tools.includes('probe__echo'));
  checkEverything(seen);
});

test('everything, over HTTP', async () => {
  const free = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => free.once('listening', resolve));
  const { port } = free.address();
  await new Promise((resolve) => free.close(resolve));
  const server = spawn(process.execPath, [serverFile('everything'), 'streamableHttp'], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    await new Promise((resolve, reject) => {
      let said = '';
      server.stderr.on('data', (piece) => {
        said += piece;
        if (said.includes('listening')) resolve();
      });
      server.once('exit', () => reject(new Error(`the server ended: ${said}`)));
    });
    const seen = await probe(['--url', `http://127.0.0.1:${port}/mcp`], EVERYTHING);
    checkEverything(seen);
  } finally {
    server.kill();
  }
});

test('filesystem stays in its folder', async () => {
  writeFileSync(join(folder, 'note.txt'), 'buy milk\n');
  const seen = await probe(started('filesystem', folder), [
    ['read_text_file', { path: join(folder, 'note.txt') }],
    ['write_file', { path: join(folder, 'new.txt'), content: 'written' }],
    ['list_directory', { path: folder }],
    ['read_text_file', { path: '/etc/passwd' }],
    ['read_text_file', {}],
  ]);
  const [read, write, list, outside, wrong] = seen.results;
  assert.equal(read.text, 'buy milk\n');
  assert.ok(!write.is_error);
  assert.equal(readFileSync(join(folder, 'new.txt'), 'utf8'), 'written');
  assert.match(list.text, /new\.txt/);
  assert.ok(outside.is_error && /denied/i.test(outside.text));
  assert.match(wrong.text, /'path' is missing/);
});

test('memory keeps what it is told', async () => {
  const environment = ['--', '/usr/bin/env', `MEMORY_FILE_PATH=${join(folder, 'memory.json')}`, process.execPath, serverFile('memory')];
  const seen = await probe(environment, [
    ['create_entities', { entities: [{ name: 'Ann', entityType: 'person', observations: ['likes tea'] }] }],
    ['search_nodes', { query: 'tea' }],
  ]);
  assert.match(seen.results[1].text, /Ann/);
  const again = await probe(environment, [['read_graph', {}]]);
  assert.match(again.results[0].text, /likes tea/);
});

test('sequential-thinking counts its thoughts', async () => {
  const thought = { thought: 'first', nextThoughtNeeded: true, thoughtNumber: 1, totalThoughts: 2 };
  const seen = await probe(started('sequential-thinking'), [
    ['sequentialthinking', thought],
    ['sequentialthinking', { ...thought, thoughtNumber: 2, nextThoughtNeeded: false }],
  ]);
  assert.equal(JSON.parse(seen.results[1].text).thoughtHistoryLength, 2);
});

test('200 calls of one server', async () => {
  const calls = Array.from({ length: 200 }, (_, i) => ['echo', { message: `call ${i}` }]);
  const seen = await probe(started('everything'), calls);
  assert.deepEqual(seen.results.map((result) => result.text), calls.map(([, given]) => `Echo: ${given.message}`));
});

// Has lathe be the client of a scenario's server: lists its tools and calls each of them.
//   node mcp_lathe_client.mjs LATHE URL      (the suite adds the URL)
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const [, , lathe, url] = process.argv
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || '{}')
const known = { add_numbers: { a: 5, b: 3 }, valid_tool: { region: 'us-east1' } }

const dir = mkdtempSync(join(tmpdir(), 'lathe-client-'))
try {
  const config = join(dir, 'lathe.yaml')
  writeFileSync(config, `tools: {mcp: {s: {url: ${JSON.stringify(url)}, allowlist: ["*"], start_timeout: 10s}}, egress: {private: [127.0.0.1, localhost]}}\n`)
  const run = (...args) => {
    const r = spawnSync(lathe, ['--config', config, ...args], { encoding: 'utf8', cwd: dir })
    if (r.status !== 0) console.error(args.join(' '), r.stderr)
    return r.stdout
  }
  const tools = run('tools', 'list', '--json').trim().split('\n').map((l) => JSON.parse(l)).filter((t) => t.origin === 'mcp:s' && t.state === 'ready')
  const echo = tools.find((t) => t.name !== 's__json_schema_echo')
  if (echo) known.json_schema_echo = { schema: echo.schema }
  const calls = context.toolCalls || tools.map((t) => t.name.slice(3)).map((name) => ({ name, arguments: known[name] || {} }))
  for (const c of calls) run('tools', 'call', '--yes', `s__${c.name}`, JSON.stringify(c.arguments))
} finally {
  rmSync(dir, { recursive: true })
}

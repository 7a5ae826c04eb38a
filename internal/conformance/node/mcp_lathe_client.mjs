// Has lathe be the client of a scenario's server: logs in where it says that a login is needed, lists
// the tools and calls each of them.
//   node mcp_lathe_client.mjs LATHE URL      (the suite adds the URL)
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const [, , lathe, url] = process.argv
const scenario = process.env.MCP_CONFORMANCE_SCENARIO || ''
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || '{}')
const known = { add_numbers: { a: 5, b: 3 }, valid_tool: { region: 'us-east1' } }
const maxLogins = 5 // of one tool; the tests are to show that lathe asks for fewer

const dir = mkdtempSync(join(tmpdir(), 'lathe-client-'))
const secret = (name, text) => {
  writeFileSync(join(dir, name), text, { mode: 0o600 })
  return '${file:' + join(dir, name) + '}'
}

// A secret is for one authorization server, which a person knows beforehand; the suite names most in the server's metadata alone.
async function issuer() {
  if (context.issuer) return context.issuer
  const { origin, pathname } = new URL(url)
  for (const path of [pathname, '']) {
    const response = await fetch(`${origin}/.well-known/oauth-protected-resource${path}`)
    if (response.ok) return (await response.json()).authorization_servers[0]
  }
  throw new Error('the scenario names no authorization server')
}

// What a person would write into the configuration of a server with what the scenario hands out.
async function oauth() {
  const c = context
  switch (scenario) {
    case 'auth/client-credentials-basic':
      return { grant: 'client_credentials', issuer: await issuer(), client_id: c.client_id, client_secret: secret('secret', c.client_secret) }
    case 'auth/client-credentials-jwt':
      return { grant: 'client_credentials', client_id: c.client_id, private_key: secret('key.pem', c.private_key_pem) }
    case 'auth/wif-jwt-bearer':
      return { grant: 'jwt_bearer', issuer: await issuer(), client_id: c.client_id, assertion: secret('jwt', c.valid_jwt) }
    case 'auth/enterprise-managed-authorization':
      return {
        grant: 'cross_app', issuer: await issuer(), client_id: c.client_id, client_secret: secret('secret', c.client_secret),
        provider: { token_endpoint: c.idp_token_endpoint, client_id: c.idp_client_id, id_token: secret('id', c.idp_id_token) },
      }
    case 'auth/pre-registration':
      return { issuer: await issuer(), client_id: c.client_id, client_secret: secret('secret', c.client_secret) }
    case 'auth/basic-cimd':
      return { client_metadata_url: 'https://conformance-test.local/client-metadata.json' }
  }
}

const config = join(dir, 'lathe.yaml')
const keys = await oauth()
const server = { url, allowlist: ['*'], start_timeout: '2m', elicitation: 'defaults', ...(keys && { oauth: keys }) }

function run(...args) {
  const r = spawnSync(lathe, ['--config', config, ...args], { encoding: 'utf8', cwd: dir })
  if (r.status !== 0) console.error(args.join(' '), r.stdout, r.stderr)
  return r.stdout
}

// visit goes to an address and wherever that leads, with no limit of time: other tests may run beside it.
setDefaultAutoSelectFamilyAttemptTimeout(60_000)
const visit = (address) =>
  new Promise((done, fail) => {
    const request = get(address, (response) => {
      response.resume()
      const to = response.headers.location
      response.on('end', () => (to ? visit(new URL(to, address)).then(done, fail) : done()))
    })
    request.on('error', fail)
  })

// login is the person with a browser: it goes to the address that is printed, and wherever that leads.
async function login() {
  const child = spawn(lathe, ['--config', config, 'mcp', 'login', 's', '--wait', '2m'], { cwd: dir, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise((done) => child.on('close', done))
  for await (const address of createInterface({ input: child.stdout })) await visit(address)
  return (await ended) === 0
}

const wantsLogin = (text) => text.includes('lathe tools login')

const ready = () => run('tools', 'list', '--json').split('\n').filter((l) => l).map((l) => JSON.parse(l)).filter((t) => t.origin === 'mcp:s' && t.state === 'ready')

// act does something again for as long as it says that a login would help, and one comes about.
async function act(...args) {
  for (let n = 0; ; n++) {
    const out = run(...args)
    if (!wantsLogin(out) || n === maxLogins || !(await login())) return out
  }
}

try {
  writeFileSync(config, JSON.stringify({ tools: { mcp: { s: server }, egress: { private: ['127.0.0.1', 'localhost'] } } }))
  let tools = ready()
  for (let n = 0; tools.length === 0 && n < maxLogins; n++) {
    if (!wantsLogin(run('tools', 'doctor', '--json')) || !(await login())) break
    tools = ready()
  }
  const echo = tools.find((t) => t.name !== 's__json_schema_echo')
  if (echo) known.json_schema_echo = { schema: echo.schema }
  const calls = context.toolCalls || tools.map((t) => t.name.slice(3)).map((name) => ({ name, arguments: known[name] || {} }))
  for (const c of calls) {
    // A null for what a tool's own schema says is no null is refused before it is sent: who means that nothing is given leaves it out.
    const given = Object.fromEntries(Object.entries(c.arguments).filter(([, v]) => v !== null))
    await act('tools', 'call', '--yes', `s__${c.name}`, JSON.stringify(given))
  }
} finally {
  rmSync(dir, { recursive: true })
}

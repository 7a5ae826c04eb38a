// Drives `lathe mcp serve` with the TypeScript SDK's client and prints what it sees in one line.
//   node mcp_client.mjs stdio LATHE | http URL KEY
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const [, , way, target, key] = process.argv
const transport =
  way === 'stdio'
    ? new StdioClientTransport({ command: target, args: ['mcp', 'serve'] })
    : new StreamableHTTPClientTransport(new URL(target), { requestInit: { headers: { Authorization: `Bearer ${key}` } } })

const client = new Client({ name: 'conformance', version: '1.0.0' })
await client.connect(transport)
const { tools } = await client.listTools()
const good = await client.callTool({ name: 'calculator', arguments: { expression: '7 + 35' } })
const bad = await client.callTool({ name: 'calculator', arguments: { expresion: '7 + 35' } })
let code = 'no error'
try {
  await client.callTool({ name: 'nope', arguments: {} })
} catch (e) {
  code = e.code
}
await client.ping()
console.log(
  client.getServerVersion().name,
  tools.map((t) => t.name).join(','),
  JSON.stringify(good.structuredContent),
  bad.isError,
  bad.structuredContent.error.code,
  code,
)
await client.close()

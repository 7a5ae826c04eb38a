package observe

// The names of OpenTelemetry's semantic conventions for generative AI, version 1.41, before these moved to a separate repository. They are
// in development and change. Names that begin with lathe are not part of the conventions.
const (
	semconvSchema = "https://opentelemetry.io/schemas/1.41.0"
	latestSchema  = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev" // from the separate repository

	spanRun  = "invoke_agent"
	spanChat = "chat"
	spanTool = "execute_tool"

	toolExtension = "extension" // a tool that this process executes
	toolFunction  = "function"  // a tool that the client executes

	attrOperation    = "gen_ai.operation.name"
	attrProvider     = "gen_ai.provider.name"
	attrRequestModel = "gen_ai.request.model"
	attrConversation = "gen_ai.conversation.id"
	attrModel        = "gen_ai.response.model"
	attrFinish       = "gen_ai.response.finish_reasons"
	attrFirstChunk   = "gen_ai.response.time_to_first_chunk" // seconds
	attrInput        = "gen_ai.usage.input_tokens"
	attrOutput       = "gen_ai.usage.output_tokens"
	attrCacheRead    = "gen_ai.usage.cache_read.input_tokens"
	attrReasoning    = "gen_ai.usage.reasoning.output_tokens"
	attrTool         = "gen_ai.tool.name"
	attrToolType     = "gen_ai.tool.type"
	attrCallID       = "gen_ai.tool.call.id"
	attrArguments    = "gen_ai.tool.call.arguments" // content
	attrResult       = "gen_ai.tool.call.result"    // content
	attrMessages     = "gen_ai.input.messages"      // content
	attrAnswer       = "gen_ai.output.messages"     // content
	attrInstructions = "gen_ai.system_instructions" // content
	attrDefinitions  = "gen_ai.tool.definitions"    // content
	attrResponseID   = "gen_ai.response.id"
	attrError        = "error.type"
	attrMCPMethod    = "mcp.method.name"
	attrMCPProtocol  = "mcp.protocol.version"
	attrMCPSession   = "mcp.session.id"
	attrRPCRequestID = "jsonrpc.request.id"
	attrRPCStatus    = "rpc.response.status_code"
	attrTransport    = "network.transport"
	attrServer       = "server.address"
	attrPort         = "server.port"

	attrRunID      = "lathe.run_id"
	attrRequestID  = "lathe.request_id"
	attrReason     = "lathe.reason"
	attrTurn       = "lathe.turn"
	attrAgent      = "gen_ai.agent.name"
	attrAttempt    = "lathe.attempt"
	attrPromptHash = "lathe.prompt_hash"
	attrUpstreamID = "lathe.upstream_request_id"
	attrDecision   = "lathe.policy.decision"
	attrRule       = "lathe.policy.rule"
	attrLimit      = "lathe.limit"
	attrCost       = "lathe.cost"
	attrBy         = "lathe.approval.by"
	attrCached     = "lathe.tool.cached"
	attrContentURL = "lathe.content_url"
	attrOmitted    = "lathe.messages_omitted" // messages before those of attrMessages
	// attrOmittedBytes is the length of a text that is too long for a span.
	attrOmittedBytes = "lathe.content_omitted_bytes"
)

package messages

import (
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
	"github.com/lathe-run/lathe/internal/destination"
	"github.com/lathe-run/lathe/internal/wire"
)

// defaultMaxTokens is the token limit if neither the request nor the options have one.
const defaultMaxTokens = 8192

// reserved reports whether name is a member that Request.Overrides of req cannot replace.
func reserved(req *lathe.Request, name string) bool {
	switch name {
	case "model", "messages", "system", "tools", "tool_choice", "stream":
		return true
	}
	return RefusesSampling(req.APIVersion) && slices.Contains(samplingNames, name)
}

// A planner decides how a request is sent, before anything is written.
type planner struct {
	req  *lathe.Request
	opts *wire.EncodeOptions

	plan   thinkingPlan
	helper []byte   // schema of the helper tool; nil: the tool is not used
	format []byte   // schema of output_config.format; nil: the member is not sent
	stubs  []string // tools that only calls in the history use, and that the server requires to be declared
	// foundTools are the tools whose definitions follow a message, by the index of the message; see placeFound.
	foundTools map[int][]*lathe.ToolSpec
	// noThinkingBefore is the index of the message before which thinking is left out, because the server has refused it.
	noThinkingBefore int

	dropped []string // paths of the members that are not sent; the encoder adds to it
}

// An encoder writes the members of one request as planned, one after the other. It changes only dropped and prefix.
type encoder struct {
	planner
	lead   int // number of leading system messages
	prefix prefix
}

// AppendRequest appends the body of a request. The messages are the last member, so that the encoded beginning of a growing conversation
// stays the same. opts may be nil.
//
// If the server does not support the response format, AppendRequest adds the tool [helperTool], which the model must call. An Assembler
// converts the call to text.
func (Codec) AppendRequest(to []byte, req *lathe.Request, opts *wire.EncodeOptions) (body []byte, dropped []string) {
	if opts == nil {
		opts = &wire.EncodeOptions{}
	}
	e := &encoder{planner: planner{req: req, opts: opts}, lead: leading(req.Messages)}
	if e.without(wire.FeatureBound) {
		e.noThinkingBefore = lastQuestion(req.Messages)
	}
	if opts.Takes.ThinkingBinding != "" && opts.Bound.Bindings != nil {
		e.prefix.bound = &opts.Bound
	}
	e.req, e.foundTools = placeFound(req, &opts.Takes)
	e.planFormat()
	if len(req.Tools) == 0 && len(req.HostedTools) == 0 && e.without(featureHistory) {
		e.stubs = usedTools(req.Messages)
	}
	e.planThinking()
	dst := wire.JSON(to).Lit("{").OptStr("model", req.Model)
	if opts.Stream {
		dst = dst.Bool("stream", true)
	}
	dst = e.sampling(dst)
	dst = e.tools(dst)
	dst = dst.Extra(req.Overrides, func(name string) bool { return reserved(req, name) })
	if e.lead > 0 {
		dst = e.system(dst)
	}
	dst = e.messages(dst)
	e.prefix.finish(dst)
	return dst.Lit("}"), e.dropped
}

// lastQuestion returns the index of the last user message that the loop did not add. Thinking after that message was written for the
// current form of the request: when the server wrote it, the thinking before that message was already left out.
func lastQuestion(msgs []lathe.Message) int {
	i := len(msgs) - 1
	for i > 0 && (msgs[i].Role != lathe.RoleUser || msgs[i].Synthetic) {
		i--
	}
	return i
}

// drop records the path of a member that the wire cannot express. Each path is recorded once, and at most wire.MaxDropped.
func (e *planner) drop(path string) {
	if len(e.dropped) < wire.MaxDropped && !slices.Contains(e.dropped, path) {
		e.dropped = append(e.dropped, path)
	}
}

// overridden reports whether an override is sent in place of the member.
func (e *planner) overridden(name string) bool {
	return wire.MemberValue(e.req.Overrides, name) != nil && !reserved(e.req, name)
}

// without reports whether the destination does not accept the feature, or the server has refused it.
func (e *planner) without(feature string) bool {
	isRejected, thinking := false, e.opts.Takes.Thinking
	switch feature {
	case featureAdaptive:
		isRejected = thinking == destination.Budget || thinking == destination.BudgetEffort
	case featureEffort:
		isRejected = thinking == destination.Budget
	case featureBudget:
		isRejected = thinking == destination.Adaptive
	}
	return isRejected || e.opts.Omits(feature)
}

// sampling appends the members for the sampling of the request, and metadata.
func (e *encoder) sampling(dst wire.JSON) wire.JSON {
	s := e.req.Sampling
	e.fitSampling(&s)
	dst = dst.FieldsExcept(e.overridden, "max_tokens", e.plan.maxTokens, "temperature", s.Temperature, "top_p", s.TopP, "top_k", s.TopK)
	if len(s.Stop) > 0 && !e.overridden("stop_sequences") {
		dst = e.stop(dst)
	}
	dst = e.thinking(dst)
	if e.req.User != "" && !e.overridden("metadata") {
		dst = dst.Val("metadata", wire.ObjectOf("user_id", e.req.User))
	}
	if s.Seed != nil {
		e.drop("sampling.seed")
	}
	if s.PresencePenalty != nil {
		e.drop("sampling.presence_penalty")
	}
	if s.FrequencyPenalty != nil {
		e.drop("sampling.frequency_penalty")
	}
	return dst
}

// fitSampling removes temperature, top_p and top_k from s where they may not be sent, and limits temperature. If thinking is on, only some
// of their values are allowed; newer versions of the API allow none.
func (e *planner) fitSampling(s *lathe.Sampling) {
	thinks := e.plan.on()
	refused := func(feature string) bool { return RefusesSampling(e.req.APIVersion) || e.without(feature) }
	if t := s.Temperature; t != nil && !e.overridden("temperature") {
		switch {
		case refused(featureTemperature), thinks && *t != 1:
			e.drop("sampling.temperature")
			s.Temperature = nil
		case *t > 1: // the range of OpenAI is 0 to 2
			e.drop("sampling.temperature")
			s.Temperature = new(1.0)
		}
	}
	if p := s.TopP; p != nil && !e.overridden("top_p") {
		if refused(featureTopP) || thinks && *p < 0.95 {
			e.drop("sampling.top_p")
			s.TopP = nil
		}
	}
	if s.TopK != nil && !e.overridden("top_k") {
		if refused(featureTopK) || thinks {
			e.drop("sampling.top_k")
			s.TopK = nil
		}
	}
}

// stop appends the stop sequences, except for those that are only white space, which the API refuses.
func (e *encoder) stop(dst wire.JSON) wire.JSON {
	dst = dst.Arr("stop_sequences")
	for i, s := range e.req.Sampling.Stop {
		if strings.TrimSpace(s) == "" {
			e.drop(wire.Element("sampling.stop", i))
			continue
		}
		dst = dst.Next().Quote(s)
	}
	return dst.Lit("]")
}

// usedTools returns the names of the tools that calls in the history use, each once.
func usedTools(msgs []lathe.Message) (names []string) {
	seen := map[string]bool{}
	for _, m := range msgs {
		for _, p := range m.Parts {
			if c, ok := p.(lathe.ToolCall); ok && !seen[c.Name] {
				seen[c.Name] = true
				names = append(names, shortName(c.Name))
			}
		}
	}
	return names
}

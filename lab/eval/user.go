package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lathe-run/lathe"
)

// A userSimulator defines the replies of the user of a scenario to the answers of the model. Replies is a script; Instructions are for a
// model that plays the user: see [Options].UserModel.
type userSimulator struct {
	Replies      []reply `json:"replies,omitempty"`
	Instructions string  `json:"instructions,omitempty"`
	// End is the text with which the model that plays the user ends the conversation; "": [END].
	End string `json:"end,omitempty"`
	// MaxTurns is the largest number of messages of the user, including the first; 0: 10. A longer conversation is a failure.
	MaxTurns int `json:"max_turns,omitempty"`
}

// A reply is one message of a scripted user. Each is used at most once: the user replies to an answer with the first unused message whose
// When matches. If none exists, the conversation ends.
type reply struct {
	// When is a regular expression that must match in the answer, ignoring case; "": any answer.
	When string `json:"when,omitempty"`
	Say  string `json:"say"`
}

// A UserModel is a model that plays the users of scenarios.
type UserModel struct {
	Name     string // its name in reports: [Run].UserModel
	Identity string // as [Target].Identity
	Model    lathe.Model
}

// Limits of a conversation.
const (
	defaultUserTurns = 10
	maxUserTurns     = 100
	maxUserBytes     = 8 << 10 // bytes of a message of a model that plays the user
	defaultEnd       = "[END]"
)

// userPrompt is the system prompt of a model that plays the user, with placeholders for the end text and the instructions of the scenario.
const userPrompt = `You play a customer who writes to a support assistant. The messages that you receive are the assistant's. Write what the
customer answers: one short message, and nothing else. Follow the instructions below. Give a detail when the assistant asks for it, not before. If the
assistant asks for something that the instructions do not contain, say that you do not know it. Never write the assistant's part.
When the assistant has done what you want, or has finally refused it, answer with exactly this text: %s

Instructions:
%s`

// openingLine is the assistant message that precedes the first message of the user.
const openingLine = "Hello, how can I help you?"

var (
	errUserModel = errors.New("the model that plays the user failed")
	errUserTurns = errors.New("the conversation did not end")
)

// A conversation is the user's side of one run. Only one goroutine may use it.
type conversation struct {
	sim   *userSimulator // nil: the user has only the first message
	model lathe.Model    // nil: the user follows the script
	tape  *tape
	left  []scripted      // replies of the script that are not used
	sent  []lathe.Message // messages for the model that plays the user
	turns int             // number of messages of the user
	usage lathe.Usage     // usage of the model that plays the user
}

// A scripted is a reply whose When is compiled.
type scripted struct {
	when *regexp.Regexp
	say  string
}

// newConversation begins the user's side of a scenario. by is the model that plays the user if the scenario has instructions for it.
func newConversation(sc *Scenario, by *UserModel, t *tape) (*conversation, error) {
	c := &conversation{sim: sc.Simulator, tape: t, turns: 1}
	if c.sim == nil {
		return c, nil
	}
	if by != nil && c.sim.Instructions != "" {
		c.model = by.Model
		c.sent = []lathe.Message{lathe.System(fmt.Sprintf(userPrompt, c.sim.end(), c.sim.Instructions)), lathe.User(openingLine), lathe.Assistant(sc.User)}
		return c, nil
	}
	if len(c.sim.Replies) == 0 {
		return nil, fmt.Errorf("scenario %s has instructions for a model that plays the user, and no script: name such a model", sc.ID)
	}
	for _, r := range c.sim.Replies {
		re, err := regexp.Compile("(?i)" + r.When)
		if err != nil {
			return nil, err
		}
		c.left = append(c.left, scripted{re, r.Say})
	}
	return c, nil
}

func (u *userSimulator) end() string { return cmp.Or(u.End, defaultEnd) }

// reply returns the reply of the user to an answer; ok is false if the conversation ends. The error wraps [errUserModel], [errUserTurns] or
// [ErrReplay].
func (c *conversation) reply(ctx context.Context, answer string) (text string, ok bool, err error) {
	switch {
	case c.sim == nil:
		return "", false, nil
	case c.model == nil:
		text, ok = c.scripted(answer)
	default:
		text, ok, err = c.played(ctx, answer)
	}
	if err != nil || !ok {
		return "", false, err
	}
	if c.turns == cmp.Or(c.sim.MaxTurns, defaultUserTurns) {
		return "", false, fmt.Errorf("%w within %d messages of the user (max_turns)", errUserTurns, c.turns)
	}
	c.turns++
	return text, true, nil
}

// scripted returns the first unused reply that matches the answer.
func (c *conversation) scripted(answer string) (string, bool) {
	i := slices.IndexFunc(c.left, func(s scripted) bool { return s.when.MatchString(answer) })
	if i < 0 {
		return "", false
	}
	say := c.left[i].say
	c.left = slices.Delete(c.left, i, i+1)
	return say, true
}

// played returns the reply of the model that plays the user, or the recorded one in a replay.
func (c *conversation) played(ctx context.Context, answer string) (text string, ok bool, err error) {
	text, ok, err = c.tape.userSaid()
	if !ok && err == nil {
		text, err = c.ask(ctx, answer)
		if err == nil && c.tape.recording {
			c.tape.User = append(c.tape.User, text)
		}
	}
	if err != nil {
		return "", false, err
	}
	c.sent = append(c.sent, lathe.Assistant(text))
	return text, !strings.Contains(text, c.sim.end()), nil
}

// ask asks the model that plays the user for the reply to an answer.
func (c *conversation) ask(ctx context.Context, answer string) (string, error) {
	if strings.TrimSpace(answer) == "" {
		answer = "(an empty message)"
	}
	c.sent = append(c.sent, lathe.User(answer))
	for d, err := range c.model.Generate(ctx, &lathe.Request{Messages: slices.Clone(c.sent)}) {
		if err != nil {
			return "", fmt.Errorf("%w: %w", errUserModel, err)
		}
		if d.Kind != lathe.DeltaFinish {
			continue
		}
		c.usage.Add(d.Finish.Usage)
		text := strings.TrimSpace(d.Finish.Message.Text())
		if text == "" {
			return "", fmt.Errorf("%w: its answer is blank", errUserModel)
		}
		return clip(text, maxUserBytes), nil
	}
	return "", fmt.Errorf("%w: its answer has no end", errUserModel)
}

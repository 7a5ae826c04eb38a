package agents

import (
	"strings"
	"testing"
)

// A scenario is one thing that an agent does with the server.
type scenario struct {
	name, title string
	// script is what the model says; OWN stands for the call of the agent's tool, and POST for the one of the server's.
	script string
	// own and posts are how often each tool is executed.
	own, posts int
	// hold is the request whose answer stops after its first text; 0: none.
	hold int
	// during acts while it has stopped.
	during func(c *cell, t *testing.T)
	// next says that a second prompt is given in the same session.
	next bool
	// cancelled says that the agent is stopped there.
	cancelled bool
	// again has the user ask once more if the agent ends with an error.
	again bool
	// fail is what the model server does to a request.
	fail *failure
	// overflow says that the failure is a conversation that is too long: the agent makes it shorter, or says so.
	overflow bool
	// asks says that a person is asked about the server's tool: the agent's user sees that, and gives a prompt after the decision.
	asks bool
	// long is the bytes of the longest argument of each call; 0: a short one.
	long int
	// strange has the model's stream contain events of unknown types. The model is on the agent's wire.
	strange bool
}

// mixed is the index of the case with two tools in one turn.
const mixed = 2

var scenarios = []scenario{
	{name: "answers", title: "answers", script: "-- turn --\ntext: The answer is " + answerText + ".\n"},
	{name: "own-tool", title: "calls its own tool", own: 1,
		script: "-- turn --\nOWN\n-- turn --\nexpect: " + secretText + "\ntext: The answer is " + answerText + ".\n"},
	{name: "mixed", title: "own tool and gateway tool in one turn", own: 1, posts: 1,
		script: "-- turn --\nOWN\nPOST\n-- turn --\ntext: The answer is " + answerText + ".\n"},
	{name: "next-prompt", title: "next prompt after the gateway's tool", posts: 1, next: true,
		script: "-- turn --\nPOST\n" + strings.Repeat("-- turn --\ntext: The answer is "+answerText+".\n", 2)},
	{name: "killed", title: "gateway killed in a stream", posts: 1, hold: 2, during: (*cell).restart, again: true,
		// The third turn is for an agent that sends the part that it has, and asks for the rest.
		script: "-- turn --\nPOST\n-- turn --\nexpect: " + postedText + "\ntext: The answer is " + answerText + ".\n-- turn --\ntext: answer is " + answerText + ".\n"},
	{name: "cancel", title: "cancel", posts: 1, hold: 2, during: (*cell).interrupt, cancelled: true,
		script: "-- turn --\nPOST\n-- turn --\nexpect: " + postedText + "\ntext: The answer is " + answerText + ".\n"},
	{name: "together", title: "two own tools and a gateway tool at once", own: 2, posts: 1,
		script: "-- turn --\nOWN\nPOST\nOWN\n-- turn --\ntext: The answer is " + answerText + ".\n"},
	{name: "long", title: "long arguments", own: 1, posts: 1, long: 50_000,
		script: "-- turn --\nOWN\nPOST\n-- turn --\ntext: The answer is " + answerText + ".\n"},
	{name: "limited", title: "429, then success", posts: 1, fail: &failure{request: 1, status: 429, after: "1", body: limitedBody},
		script: "-- turn --\nPOST\n-- turn --\nexpect: " + postedText + "\ntext: The answer is " + answerText + ".\n"},
	{name: "limited-later", title: "429 after the gateway's tool", posts: 1, fail: &failure{request: 2, status: 429, after: "1", body: limitedBody}, again: true,
		script: "-- turn --\nPOST\n-- turn --\nexpect: " + postedText + "\ntext: The answer is " + answerText + ".\n"},
	{name: "failed", title: "error in the stream", posts: 1, fail: &failure{request: 2}, again: true,
		script: "-- turn --\nPOST\n-- turn --\nexpect: " + postedText + "\ntext: The answer is " + answerText + ".\n-- turn --\ntext: answer is " + answerText + ".\n"},
	{name: "overflow", title: "conversation too long", own: 1, posts: 1, overflow: true,
		fail:   &failure{request: 2, status: 400, body: overflowBody, rest: strings.Repeat("-- turn --\ntext: The answer is "+answerText+".\n", 20)},
		script: "-- turn --\nOWN\nPOST\n"},
	{name: "approval", title: "approval", posts: 1, asks: true,
		script: "-- turn --\nPOST\n-- turn --\nexpect: " + postedText + "\ntext: " + notePosted + "\n-- turn --\ntext: The answer is " + answerText + ".\n"},
	{name: "strange", title: "unknown events", own: 1, posts: 1, strange: true,
		script: "-- turn --\nOWN\nPOST\n-- turn --\ntext: The answer is " + answerText + ".\n"},
}

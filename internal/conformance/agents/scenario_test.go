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
}

// mixed is the index of the case with two tools in one turn.
const mixed = 2

var scenarios = []scenario{
	{name: "answers", title: "answers", script: "-- turn --\ntext: The answer is " + answerText + ".\n"},
	{name: "own-tool", title: "calls its own tool", own: 1,
		script: "-- turn --\nOWN\n-- turn --\nexpect: " + secretText + "\ntext: The answer is " + answerText + ".\n"},
	{name: "mixed", title: "own tool and server tool in one turn", own: 1, posts: 1,
		script: "-- turn --\nOWN\nPOST\n-- turn --\ntext: The answer is " + answerText + ".\n"},
	{name: "next-prompt", title: "next prompt after the server's tool", posts: 1, next: true,
		script: "-- turn --\nPOST\n" + strings.Repeat("-- turn --\ntext: The answer is "+answerText+".\n", 2)},
	{name: "killed", title: "server killed in a stream", posts: 1, hold: 2, during: (*cell).restart, again: true,
		// The third turn is for an agent that sends the part that it has, and asks for the rest.
		script: "-- turn --\nPOST\n-- turn --\nexpect: " + postedText + "\ntext: The answer is " + answerText + ".\n-- turn --\ntext: answer is " + answerText + ".\n"},
	{name: "cancel", title: "cancel", posts: 1, hold: 2, during: (*cell).interrupt, cancelled: true,
		script: "-- turn --\nPOST\n-- turn --\nexpect: " + postedText + "\ntext: The answer is " + answerText + ".\n"},
}

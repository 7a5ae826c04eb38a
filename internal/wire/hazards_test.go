package wire_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hazards are mistakes that translations between the wires are known for, each with the tests that show that this one does not
// make it. A test stands as DIRECTORY.NAME, below the root of the module.
var hazards = []struct{ hazard, tests string }{
	{"Arguments of a call that are known whole are not streamed, and clients read none.", "internal/wire/messages.TestW1_ArgumentsArriveAsDeltas"},
	{"The indexes of blocks have gaps, or one comes twice.", "internal/wire/messages.TestW2_IndexesAreDense"},
	{"The index of a block becomes the index of a call, so that the first call of a chat has another one than 0.", "server.TestMixedTurnOnEachWire"},
	{"A stream and the whole answer differ.", "internal/wire/gemini.TestW5_StreamAndWholeAreEqual internal/wire/messages.TestW5_StreamedAndWholeAreEqual internal/wire/responses.TestW5_AnswerEqualsStream"},
	{"The finish reason says that there are calls and there are none, or the reverse.", "internal/wire/messages.TestW6_ReasonFitsContent internal/wire/gemini.TestW6_ReasonIsThatOfTheContent"},
	{"An event is of another type than its item.", "internal/wire/responses.TestW7_EventsMatchTheirSchemas internal/wire/messages.TestW7_DeltasFitTheirBlock"},
	{"A stream of a model server that ends early is taken for whole, or has no end or two.", "server.TestEveryWireEndsOnceWhenTheModelBreaksOff internal/wire/messages.TestWriterEndsOnce"},
	{"The details of the usage are absent, or cached tokens count twice.", "internal/wire/messages.TestW9_UsageIsComplete internal/wire/gemini.TestW9_W10_Usage internal/wire/messages.TestW10_CachedTokensCountOnce"},
	{"A result with an image becomes a list where a text is needed.", "internal/wire/messages.TestW11_ResultWithImage"},
	{"A conversation that comes back loses calls, or reasoning becomes text.", "internal/wire/messages.TestW12_ReplayKeepsAnswer internal/wire/gemini.TestW12_ReplayKeepsTheForm"},
	{"Tools of types that are no functions are dropped with their calls.", "internal/wire/responses.TestW13_EveryToolOfCodexIsThereOrListed"},
	{"A function in the form of chat completions has an empty name on Responses.", "internal/wire/responses.TestW14_NestedFunctionIsFlattened"},
	{"Ids of calls do not fit the wire, or do not come back as they were.", "internal/wire/gemini.TestW15_OddIDs internal/wire/messages.TestW15_OddIDsComeBack internal/wire/responses.TestW15_IDsFitTheWire"},
	{"Ids that are made up differ from one request to the next.", "internal/wire/messages.TestW16_MadeUpIDsAreStable internal/wire/gemini.TestW16_MadeIDsAreTheSameEachTime"},
	{"Results are not first in their message, not in one message, or not in the order of the calls.", "internal/wire/messages.TestW17_ResultsStandFirst internal/wire/responses.TestW36_ResultsFollowTheirCallsInOrder"},
	{"A result without a call is accepted, or a choice is sent without tools.", "internal/wire/responses.TestW19_OrphanResults internal/wire/gemini.TestW19_NoChoiceWithoutTools"},
	{"A history with calls is sent without tools to a server that demands them.", "internal/wire/messages.TestAppendRequestStubs"},
	{"No arguments become an empty text.", "internal/wire/gemini.TestW21_EmptyArguments internal/wire/messages.TestW21_NoArgumentsAreAnObject"},
	{"Calls of one step run into each other.", "internal/wire/gemini.TestW22_ParallelCalls internal/wire/messages.TestW22_ParallelCallsStayApart"},
	{"A call that was cut off is taken for whole.", "internal/wire/gemini.TestW23_TruncatedCallIsNotWhole internal/wire/responses.TestW23_CutCallIsNeverWhole"},
	{"A refusal, a filter or a pause becomes an ordinary end.", "internal/wire/gemini.TestW24_RefusalIsNoStop internal/wire/responses.TestW24_ReasonsInBothDirections"},
	{"Schemas are damaged by their adaptation.", "internal/wire/responses.TestW25_SchemasPassUnchanged internal/wire/gemini.TestW25_OwnSchemasAreUntouched"},
	{"Signatures of reasoning are dropped, or reach another vendor.", "internal/wire/gemini.TestW26_SignaturesReachTheirEntryAlone internal/wire/messages.TestW26_SignatureSurvives"},
	{"System text within a conversation is refused or moved.", "provider.TestSystemTurns internal/wire/messages.TestParseRequestOrder"},
	{"The tool that stands for an output format is shown, or hides a call.", "internal/wire/messages.TestW28_HelperToolIsHidden"},
	{"An error after the first byte is lost, or has the form of another wire.", "server.TestEveryWireSaysErrorsInItsOwnForm provider.TestErrorWithinTheStreamOfEveryWire"},
	{"A member that the target refuses is sent, or one is dropped in silence.", "internal/wire/gemini.TestW30_EachOptionIsSentOrListed internal/wire/messages.TestW30_NoOptionIsLost"},
	{"A call of this server reaches a client that tries to execute it.", "server.TestEveryWireHandsOverMixedTurns internal/wire/messages.TestWriterShowsServerCalls"},
	{"An error event has one of the two forms that clients read.", "internal/wire/responses.TestW32_ErrorEventHasBothForms"},
	{"What this server called is forgotten in the next request.", "server.TestTextAnswerBringsBackTheCallsBehindIt server.TestHiddenTurnsComeBackInCarriers server.TestRoundsOfTheServerComeBack"},
	{"An empty part is refused.", "internal/wire/gemini.TestW37_EmptyPart"},
	{"A request that is sent again has a second effect.", "server.TestEveryWireHasOneEffect server.TestW38_ResentMessageOfAFailedResponseHasOneEffect"},
	{"An event of this server's own breaks a client.", "internal/wire/messages.TestW39_NoEventsOfOurOwn"},
	{"An encrypted item of another key, user or conversation is accepted.", "internal/gateway/splice.TestCarrierOfAnotherConversationIsRefused internal/wire/gemini.TestW40_SealsOfOthersAreTextOrSignatures"},
	{"Names that were mapped are not mapped back.", "internal/wire/responses.TestW41_MappedNamesAreMappedBack internal/wire/gemini.TestW41_NamesAreMappedBack"},
	{"The next request of a conversation does not begin as the one before, and the vendor's cache is lost.", "server.TestRequestsOfAChainBeginAsTheOneBefore"},
}

// Each hazard has tests, and these exist.
func TestEachHazardHasATest(t *testing.T) {
	t.Parallel()
	sources := map[string]string{}
	source := func(dir string) string {
		if text, ok := sources[dir]; ok {
			return text
		}
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
		sources[dir] = all.String()
		return sources[dir]
	}
	for _, h := range hazards {
		tests := strings.Fields(h.tests)
		if len(tests) == 0 {
			t.Errorf("%s: no test", h.hazard)
		}
		for _, test := range tests {
			dir, name, _ := strings.Cut(test, ".")
			if !strings.Contains(source(dir), "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("%s: there is no test %s in %s", h.hazard, name, dir)
			}
		}
	}
}

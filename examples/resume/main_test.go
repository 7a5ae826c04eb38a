package main

func Example() {
	main()
	// Output:
	// awaiting_tool_results where_am_i
	// answered You are in Oslo.
}

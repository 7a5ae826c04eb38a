package main

func Example() {
	main()
	// Output:
	// Let me use calculator.
	// [calculator begins]
	// [calculator: ok]
	// 7 + 35 = 42.
	// answered after 2 turns
}

package main

func Example() {
	main()
	// Output:
	// get_weather says: temperature is 21.
}

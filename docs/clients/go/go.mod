module licensing

go 1.24

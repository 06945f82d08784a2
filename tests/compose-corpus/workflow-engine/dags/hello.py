print("dag")

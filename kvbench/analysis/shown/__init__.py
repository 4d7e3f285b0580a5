"""Choose the rows that each figure shows, with every number that it draws. One file for each
figure.
"""

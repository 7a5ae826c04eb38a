/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-DEROD3J6.js";import"./chunk-PU3SJNOR.js";import"./chunk-37W357HJ.js";import"./chunk-DOQEEGQV.js";export{c as default,b as errorRate,a as verdict};

/* Licences of the libraries in this file: NOTICE.txt */
import{a,b}from"./chunk-N5FNXC5W.js";import"./chunk-FZKZSVAT.js";import"./chunk-SJQVAKVA.js";import"./chunk-IMV4EARU.js";export{b as default,a as verdict};

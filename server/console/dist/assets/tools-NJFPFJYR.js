/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-WH7PKXF4.js";import"./chunk-GE4B5JTS.js";import"./chunk-HYAX4NYF.js";import"./chunk-5FCUUUAC.js";export{c as default,b as errorRate,a as verdict};
